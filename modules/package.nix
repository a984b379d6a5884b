# The commands: flor, florctl and flor-provider, static. With pkcs11, florctl alone, which loads
# modules of PKCS #11, and so is not.
{
  lib,
  buildGoModule,
  pkcs11 ? false,
}:
buildGoModule {
  pname = if pkcs11 then "florctl-pkcs11" else "florete";
  version = "0.1.0";
  src = ../.;

  # The hash of what `go mod vendor` makes; a test tells the new one.
  vendorHash = "sha256-Ik7KHRFxW6tkYRYbzKH7IWXCfpNWajE56+GDrxBVF4I=";
  subPackages =
    if pkcs11 then
      [ "nix/cmd/florctl" ]
    else
      [
        "agent/cmd/flor"
        "nix/cmd/florctl"
        "providers/cmd/flor-provider"
      ];
  env.CGO_ENABLED = if pkcs11 then 1 else 0;
  ldflags = [
    "-s"
    "-w"
  ];
  # The tests want Nix, a network of their own, and minutes: ./tests/run.
  doCheck = false;

  # Each program writes its own manual pages; a build for another platform cannot run it.
  postInstall = ''
    mkdir -p $out/share/man/man1
    for program in $out/bin/*; do
      "$program" man $out/share/man/man1 || true
    done
  '';

  meta = {
    description = "Runs a cluster of machines from one Nix flake";
    mainProgram = if pkcs11 then "florctl" else "flor";
    platforms = lib.platforms.linux;
  };
}
