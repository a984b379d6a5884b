# The commands flor, florctl and flor-provider as static programs. With pkcs11, florctl alone, which
# is not static because it loads PKCS #11 modules.
{
  lib,
  buildGoModule,
  pkcs11 ? false,
}:
buildGoModule {
  pname = if pkcs11 then "florctl-pkcs11" else "florete";
  version = "0.1.0";
  src = ../.;

  # The hash of the output of `go mod vendor`; if it is wrong, a test prints the new one.
  vendorHash = "sha256-WCqyZzQUw28DGprZuoePJRTWht5cBy7hlEpafV0BEIU=";
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
  # The tests need Nix, a network namespace and several minutes: ./tests/run.
  doCheck = false;

  # Each program writes its own manual pages, unless it is built for another platform.
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
