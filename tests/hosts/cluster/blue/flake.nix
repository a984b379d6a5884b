{
  description = "Another cluster, some hosts of which are members of the first";

  inputs.florete.url = "path:../../../..";

  outputs =
    { self, florete }:
    let
      topology = import ./topology.nix {
        facts = builtins.fromJSON (builtins.readFile ../facts.json);
        roots = [ ./ca.crt ];
      };
      cluster = change: florete.lib.mkCluster (topology // change // { inherit self; });
    in
    {
      florete.blue = cluster { };
      # The author of this cluster does not know that the hosts are in another.
      florete.undeclared = cluster {
        hosts = builtins.mapAttrs (_: h: removeAttrs h [ "instance" ]) topology.hosts;
      };
    };
}
