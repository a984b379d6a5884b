{ base, merge, ... }:
merge base {
  services.local = {
    host = "beta";
    port = 1;
    visibility = "host";
  };
  roles.node = { };
  roles.some = {
    services = [
      "local"
      "wiki"
    ];
    serviceGroups = [ "nothing" ];
  };
  serviceGroups.nothing = [ ];
}
