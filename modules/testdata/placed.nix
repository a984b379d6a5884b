# lib → an example of a module → its result on each host of a cluster that places services, and
# where the topology placed them.
lib: example:
let
  inherit (import ../../nix) mkCluster;
  cluster = lib.recursiveUpdate (import ../../tests/cluster/cluster.nix) {
    hosts = {
      drhorrible.weight = 5;
      ursula.group = "eu";
      raishan.group = "eu";
    };
    hostGroups.eu = { };
    services = {
      search = {
        replicas = 2;
        port = 9200;
        placement.spread = "one-per-group";
      };
      standby = {
        replicas = 1;
        port = 9201;
        placement.apart = [ "search" ];
      };
    };
  };
  florete = mkCluster cluster;
  evaluate =
    modules:
    (lib.evalModules {
      modules = [
        (import ./nixos.nix lib)
        (import ../. (_: { florete = "florete"; }) "").host
      ]
      ++ modules;
    }).config.services;
  on =
    hostName:
    evaluate [
      example
      {
        options.services.opensearch = lib.mkOption {
          type = lib.types.attrsOf lib.types.anything;
          default = { };
        };
        config.services.florete = {
          cluster = florete;
          inherit hostName;
        };
      }
    ];
in
{
  hosts = lib.mapAttrs (host: _: {
    opensearch = (on host).opensearch;
    inherit ((on host).florete) runs;
  }) florete.topology.hosts;
  services = lib.mapAttrs (_: s: s.hosts) florete.topology.services;
  # A host in no cluster has no services; a wrong host has a fault.
  without = (evaluate [ { services.florete.hostName = "x"; } ]).florete.runs;
  unknown = (builtins.tryEval (on "nobody").florete.runs).success;
}
