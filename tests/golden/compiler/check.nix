# system → a derivation that can be built only if every case has the expected result.
system:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    filter
    pathExists
    readFile
    ;

  cases = import ./.;
  read = path: if pathExists path then readFile path else "";

  documents =
    dir: set:
    concatMap (
      host:
      concatMap (kind: [
        {
          path = dir + "/${host}/${kind}.json";
          text = set.${host}.${kind}.body;
        }
        {
          path = dir + "/${host}/${kind}.envelope.json";
          text = set.${host}.${kind}.envelope;
        }
      ]) (attrNames set.${host})
    ) (attrNames set);

  wanted =
    case: file:
    let
      dir = ./. + "/${case}";
      result = cases.${case}.${file};
    in
    if file == "near-miss.nix" then
      [
        {
          path = dir + "/no faults";
          text = result.report;
        }
      ]
    else
      [
        {
          path = dir + "/expected.txt";
          text = result.report;
        }
      ]
      ++ documents (dir + "/expected") result.documents;

  wrong = filter (e: read e.path != e.text) (
    concatMap (case: concatMap (wanted case) (attrNames cases.${case})) (attrNames cases)
  );
in
if wrong == [ ] then
  derivation {
    name = "florete-golden";
    inherit system;
    builder = "builtin:buildenv";
    derivations = "";
    manifest = ./check.nix;
  }
else
  throw "not as expected:\n${concatStringsSep "\n" (map (e: toString e.path) wrong)}"
