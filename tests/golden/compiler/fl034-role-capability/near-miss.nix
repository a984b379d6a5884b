{ base, merge, ... }:
merge base {
  hosts.alpha = {
    roles = [ "encoder" ];
    group = "eu";
  };
  hostGroups.eu.capabilities = [ "gpu" ];
  # What a user has is no matter of hosts.
  users.ann.roles = [ "encoder" ];
  roles.encoder = {
    services = [ "wiki" ];
    requires = [ "gpu" ];
  };
}
