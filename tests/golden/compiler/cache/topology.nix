# Every host reads the binary caches of the config providers, one of which is a second instance; a
# user on a host and the node of the host add paths.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    instance = "blue";
    roles = [ "builder" ];
    users = [ "dora" ];
  };
  users.dora.roles = [ "builder" ];
  roles = {
    node.serviceGroups = [ "nix-cache" ];
    builder.serviceGroups = [ "nix-cache-write" ];
  };
  serviceGroups = {
    nix-cache = [ "wiki" ];
    nix-cache-write = [ ];
  };
  providers.config.hosts = [
    "beta"
    "alpha"
  ];
}
