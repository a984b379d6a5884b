{
  description = "mixed: the cluster whose hosts have different releases";

  inputs.florete.url = "path:../../..";

  outputs = { self, florete }: {
    florete.mixed = florete.lib.mkCluster (import ./cluster.nix // { inherit self; });
  };
}
