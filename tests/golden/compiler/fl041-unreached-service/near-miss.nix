{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 1;
    visibility = "host";
  };
  services.shop = {
    host = "beta";
    port = 2;
  };
  roles.reader.services = [
    "shop"
    "wiki"
  ];
}
