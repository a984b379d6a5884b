# The commands: flor, florctl and flor-provider, static.
{ lib, buildGoModule }:
buildGoModule {
  pname = "florete";
  version = "0.1.0";
  src = ../.;

  # The hash of what `go mod vendor` makes; a test tells the new one.
  vendorHash = "sha256-jr1fA0LaZW00gYUoV6AWCLVD9kda0342OVQBS3lvEQQ=";
  subPackages = [
    "agent/cmd/flor"
    "nix/cmd/florctl"
    "providers/cmd/flor-provider"
  ];
  env.CGO_ENABLED = 0;
  ldflags = [
    "-s"
    "-w"
  ];
  # The tests want Nix, a network of their own, and minutes: ./tests/run.
  doCheck = false;

  meta = {
    description = "Runs a cluster of machines from one Nix flake";
    mainProgram = "flor";
    platforms = lib.platforms.linux;
  };
}
