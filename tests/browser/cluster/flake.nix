{
  description = "The cluster that people come to with a browser";

  inputs.florete.url = "path:../../..";

  outputs = { self, florete }: {
    florete.web = florete.lib.mkCluster (import ./cluster.nix // { inherit self; });
  };
}
