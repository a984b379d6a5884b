{ base, merge, ... }:
merge base {
  hosts.alpha = {
    roles = [ "encoder" ];
    group = "eu";
  };
  hostGroups.eu.capabilities = [ "gpu" ];
  # Users need no capability.
  users.ann.roles = [ "encoder" ];
  roles.encoder = {
    services = [ "wiki" ];
    requires = [ "gpu" ];
  };
}
