{
  description = "The cluster of the scenarios, in every revision that they deploy";

  inputs.florete.url = "path:../../..";

  outputs = { self, florete }: {
    florete = import ./revisions.nix {
      inherit (florete.lib) mkCluster;
      inherit self;
      facts = builtins.fromJSON (builtins.readFile ./facts.json);
      roots = [ ./ca.crt ];
      nextRoots = [ ./next.crt ];
    };
  };
}
