{
  description = "Florete: a cluster of machines from one flake";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  # lib and the checks never touch nixpkgs: they evaluate offline.
  outputs = { self, nixpkgs }:
    let
      each = f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) [ "aarch64-linux" "x86_64-linux" ]);
    in
    {
      lib = import ./nix;

      checks = each (system: {
        compiler = import ./tests/golden/compiler/check.nix system;
        example = (self.lib.mkCluster (import ./tests/cluster/cluster.nix)).check system;
      });
    };
}
