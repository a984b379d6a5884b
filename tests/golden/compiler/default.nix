# Every case in one evaluation. A case is a directory with a topology, written as a change to the
# valid one in base.nix, and the expected result:
#
#   topology.nix    the topology
#   expected.txt    the faults it has, as people read them, or
#   expected/HOST/  the documents it compiles to
#   near-miss.nix   almost the same topology, which has no fault
#   same-*.nix      another writing of it, which compiles to the same bytes
let
  inherit (builtins)
    attrNames
    filter
    listToAttrs
    match
    readDir
    substring
    ;
  inherit (import ../../../nix) mkCluster rules;
  inherit (import ../../../nix/lib/fault.nix) errors report;
  inherit (import ../../../nix/lib/names.nix) sri;

  inherit (import ./merge.nix) merge;
  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + substring 8 42 (sri name);
  base = import ./base.nix { inherit key; };

  # Warnings are only compared in cases of warnings and of consequences of a fault.
  warns =
    case: case == "warnings" || match "follow-ups.*" case != null || (rules."FL${substring 2 3 case}" or { }).severity or "" == "warning";
  result =
    case: file:
    let
      cluster = mkCluster (import file { inherit base key merge; });
      faults = if warns case then cluster.faults else errors cluster.faults;
    in
    if faults == [ ] then
      {
        report = "";
        documents = cluster.compiled;
      }
    else
      {
        report = report cluster.name faults + "\n";
        documents = { };
      };

  directories = filter (n: (readDir ./.).${n} == "directory") (attrNames (readDir ./.));
  variants = case: filter (f: match ".*\\.nix" f != null) (attrNames (readDir (./. + "/${case}")));
  over =
    names: f:
    listToAttrs (
      map (name: {
        inherit name;
        value = f name;
      }) names
    );
in
over directories (case: over (variants case) (file: result case (./. + "/${case}/${file}")))
