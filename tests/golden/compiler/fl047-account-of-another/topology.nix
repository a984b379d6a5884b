# Account www acts as blog, the first by name; root acts as the wiki or the time, and no longer as
# the node.
{ base, merge, ... }:
merge base {
  services = {
    wiki = {
      user = "root";
      roles = [ "reader" ];
    };
    blog = {
      host = "beta";
      port = 81;
      user = "www";
    };
    shop = {
      host = "beta";
      port = 82;
      user = "www";
      roles = [ "reader" ];
    };
    time = {
      host = "alpha";
      port = 123;
      user = "root";
    };
  };
  hosts.beta.callers."user/ann" = [
    1000
    "www"
  ];
  roles.reader.services = [
    "wiki"
    "blog"
    "shop"
  ];
  serviceGroups.control-plane = [ "time" ];
}
