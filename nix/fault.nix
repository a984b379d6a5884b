# A fault is data: { id, severity, place, problem, value, remedy }; rules.nix has the
# ids. default.nix reports all faults of a topology together.
let
  inherit (builtins)
    concatStringsSep
    filter
    length
    sort
    ;
  inherit (import ./text.nix) escape;
  rules = import ./rules.nix;

  line =
    f:
    "${f.id} ${
      if f.severity == "error" then "" else "${f.severity}: "
    }${f.place}: ${f.problem} ${f.value}; ${f.remedy}";

  before =
    a: b:
    if a.place != b.place then
      a.place < b.place
    else if a.id != b.id then
      a.id < b.id
    else
      a.value < b.value;

  count = n: noun: "${toString n} ${noun}${if n == 1 then "" else "s"}";
in
{
  # Names that people wrote are in all of it: no terminal obeys them.
  # fault :: { id, place, problem, value, remedy } -> Fault
  fault =
    {
      id,
      place,
      problem,
      value,
      remedy,
    }:
    {
      inherit id;
      place = escape place;
      problem = escape problem;
      value = escape value;
      remedy = escape remedy;
      inherit (rules.${id}) severity;
    };

  # By place, rule and value.
  # order :: [Fault] -> [Fault]
  order = sort before;
  # Those that withhold documents.
  # errors :: [Fault] -> [Fault]
  errors = filter (f: f.severity == "error");

  # What is thrown for the faults of a cluster.
  # report :: String -> [Fault] -> String
  report =
    name: faults:
    "cluster ${name} has ${count (length faults) "fault"}:\n"
    + concatStringsSep "\n" (map (f: "  " + line f) faults);
}
