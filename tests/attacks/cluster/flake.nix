{
  description = "sec: the cluster that is attacked";

  inputs.florete.url = "path:../../..";

  outputs = { self, florete }: {
    florete.sec = florete.lib.mkCluster (import ./cluster.nix // { inherit self; });
  };
}
