{
  description = "A cluster of machines";

  inputs.florete.url = "github:florete/florete";

  outputs =
    { self, florete }:
    let
      cluster = florete.lib.mkCluster (florete.lib.folder ./. // { inherit self; });
    in
    {
      florete.example = cluster;
      checks.x86_64-linux.example = cluster.check "x86_64-linux";
      checks.aarch64-linux.example = cluster.check "aarch64-linux";
    };
}
