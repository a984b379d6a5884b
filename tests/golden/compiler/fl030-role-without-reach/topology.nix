{ base, merge, ... }:
merge base {
  services.local = {
    host = "beta";
    port = 1;
    visibility = "host";
  };
  roles.empty = { };
  roles.hollow.serviceGroups = [ "nothing" ];
  roles.inside.services = [ "local" ];
  serviceGroups.nothing = [ ];
}
