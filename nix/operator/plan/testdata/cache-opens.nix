# Every host may read the binary cache, and one may add paths.
{ base, merge, ... }: {
  after = merge base {
    hosts.beta.roles = [ "builder" ];
    roles = {
      node.serviceGroups = [ "nix-cache" ];
      builder.serviceGroups = [ "nix-cache-write" ];
    };
    serviceGroups = {
      nix-cache = [ ];
      nix-cache-write = [ ];
    };
    providers.config.hosts = [ "alpha" ];
  };
}
