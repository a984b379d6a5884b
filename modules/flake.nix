# Module of flake-parts: florete.clusters.<name> becomes the output florete.<name> of the flake, and
# a check for every system.
{
  lib,
  config,
  self,
  ...
}:
let
  inherit (import ../nix) mkCluster;
  clusters = builtins.mapAttrs (
    _: topology: mkCluster (topology // { inherit self; })
  ) config.florete.topologies;
in
{
  imports = [ ./topology.nix ];

  config = {
    flake.florete = clusters;
    perSystem = { system, ... }: {
      checks = lib.mapAttrs' (
        name: cluster: lib.nameValuePair "florete-${name}" (cluster.check system)
      ) clusters;
    };
  };
}
