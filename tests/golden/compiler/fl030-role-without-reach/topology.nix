{ base, merge, ... }: merge base {
  services.local = { host = "beta"; port = 1; visibility = "host"; };
  roles.empty = { };
  roles.hollow.groups = [ "nothing" ];
  roles.inside.services = [ "local" ];
  groups.nothing = [ ];
}
