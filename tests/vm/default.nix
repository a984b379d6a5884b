# NixOS VM tests of the scenarios: { vm-first-boot, vm-renewal, … }.
# florete is the flake, pkgs nixpkgs of one system.
{ florete, pkgs }:
let
  inherit (pkgs) lib;
  scenarios = ../scenarios;
  # They run in units too, whose PATH has no python3.
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
      # The scripts are typed where they run, not by what one of them leaves unused.
      skipTypeCheck = true;
      skipLint = true;
    };

  # Names need no nixpkgs, so that the flake's other checks do not either.
  # Bundles, and what an operator types where they are, are for any Linux but NixOS.
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
