{
  description = "demo: an example cluster";

  inputs.florete.url = "path:../..";

  outputs = { self, florete }: {
    florete.demo = florete.lib.mkCluster (import ./cluster.nix // { inherit self; });
    checks.x86_64-linux.demo = self.florete.demo.check "x86_64-linux";
    checks.aarch64-linux.demo = self.florete.demo.check "aarch64-linux";
  };
}
