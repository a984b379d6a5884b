{
  description = "Two clusters of one trust domain";

  inputs.florete.url = "path:../../..";

  outputs =
    { self, florete }:
    builtins.mapAttrs (_: clusters: builtins.mapAttrs (_: c: florete.lib.mkCluster (c // { inherit self; })) clusters) {
      florete = import ./clusters.nix;
    };
}
