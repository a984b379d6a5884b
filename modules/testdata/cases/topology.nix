# A monitoring host's configuration is computed from the facts of all others.
{
  lib,
  mkCluster,
  modules,
  ...
}:
let
  cluster = lib.recursiveUpdate (import ../../../tests/cluster/cluster.nix) {
    hosts.ursula.facts.metrics = 9100;
    hosts.raishan.facts.metrics = 9101;
  };
in
{
  imports = [
    modules.host
    (
      { config, ... }:
      {
        seen = lib.mapAttrsToList (
          host: port: "${host}:${toString port}"
        ) config.services.florete.topology.facts.metrics.hosts;
      }
    )
  ];
  services.florete.cluster = mkCluster cluster;
  services.florete.hostName = "laptop";
}
