# NixOS VM tests of the scenarios: { vm-first-boot, vm-renewal, … }. florete is the flake, pkgs
# nixpkgs for one system.
{ florete, pkgs }:
let
  inherit (pkgs) lib;
  scenarios = ../scenarios;
  # The programs also run in units, whose PATH has no python3.
  programs = pkgs.runCommand "florete-scenario-programs" { nativeBuildInputs = [ pkgs.python3 ]; } ''
    cp -r ${scenarios}/programs $out
    chmod -R u+w $out && patchShebangs --build $out
  '';

  keys = pkgs.callPackage ./keys.nix {
    inherit florete;
    program = florete.packages.${pkgs.stdenv.hostPlatform.system}.florete;
  };
  facts = lib.importJSON "${keys}/facts.json";
  revisions = import ../hosts/cluster/revisions.nix {
    inherit (florete.lib) mkCluster;
    inherit facts;
    serial = 1;
    roots = [ (builtins.readFile "${keys}/operator/ca.crt") ];
    nextRoots = [ (builtins.readFile "${keys}/operator/next/ca.crt") ];
  };
  test =
    script:
    pkgs.testers.runNixOSTest {
      name = "florete-${name script}";
      nodes = lib.genAttrs (builtins.attrNames facts.addresses) (
        import ./host.nix {
          inherit
            florete
            revisions
            keys
            facts
            programs
            ;
          named = import ./named.nix (builtins.attrNames revisions) (
            builtins.readFile (scenarios + "/${script}")
          );
        }
      );
      testScript = lib.concatMapStrings builtins.readFile [
        (scenarios + "/common.py")
        (scenarios + "/${script}")
      ];
      # Type checks and lints fail for unused parts of the common script.
      skipTypeCheck = true;
      skipLint = true;
    };

  # The names are found without nixpkgs, so the flake's other checks do not need it. Scenarios of
  # bundles and of operators' commands are for other systems than NixOS.
  scripts = builtins.filter (
    f:
    builtins.match ".*\\.py" f != null
    && f != "common.py"
    && builtins.match ".*\n# (bundles|operator): .*" (builtins.readFile (scenarios + "/${f}")) == null
  ) (builtins.attrNames (builtins.readDir scenarios));
  name = script: builtins.replaceStrings [ "_" ".py" ] [ "-" "" ] script;
in
builtins.listToAttrs (
  map (script: {
    name = "vm-${name script}";
    value = test script;
  }) scripts
)
