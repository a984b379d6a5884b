# An account loses no access by acting as another identity, or `callers` says that it acts as that
# one.
{ base, merge, ... }:
merge base {
  services = {
    wiki = {
      user = "www";
      roles = [ "reader" ];
    };
    blog = {
      host = "beta";
      port = 81;
      user = "www";
      roles = [ "reader" ];
    };
    shop = {
      host = "beta";
      port = 82;
    };
    time = {
      host = "alpha";
      port = 123;
      user = "ann";
    };
  };
  hosts.beta.callers = {
    "user/ann" = [
      1000
      "ann"
    ];
    "service/shop" = [ "root" ];
  };
  roles.reader.services = [
    "wiki"
    "blog"
    "shop"
  ];
  serviceGroups.control-plane = [ "time" ];
}
