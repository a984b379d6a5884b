{
  description = "Florete: a cluster of machines from one flake";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  # Only what needs packages touches nixpkgs: lib and its checks evaluate offline.
  outputs = { self, nixpkgs }: {
    lib = import ./nix;
  };
}
