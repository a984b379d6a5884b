# A fault is data: { id, severity, place, problem, value, remedy }; rules.nix lists the ids.
# default.nix reports all faults of a topology together.
let
  inherit (builtins)
    concatMap
    concatStringsSep
    elemAt
    filter
    genList
    groupBy
    head
    length
    sort
    ;
  inherit (import ./default.nix) first;
  inherit (import ./text.nix) escape;
  rules = import ../check/rules.nix;

  said = f: "${f.problem} ${f.value}; ${f.remedy}";
  line =
    places: f: "${f.id} ${if f.severity == "error" then "" else "${f.severity}: "}${places}: ${said f}";

  # Removes duplicates.
  distinct =
    faults:
    let
      all = genList (i: {
        inherit i;
        fault = elemAt faults i;
      }) (length faults);
      whole = e: line e.fault.place e.fault;
      same = groupBy whole all;
    in
    map (e: e.fault) (filter (e: e.i == (head same.${whole e}).i) all);

  # Three or more faults that differ only in their places become one line, as in Go's Lines.
  lines =
    all:
    let
      faults = distinct all;
      alike = groupBy (f: f.id + said f) faults;
      of =
        f:
        let
          same = alike.${f.id + said f};
          more = length same - listed;
        in
        if length same < 3 then
          [ (line f.place f) ]
        else if f.place != (head same).place then
          [ ]
        else
          [
            (line (
              concatStringsSep ", " (map (s: s.place) (first listed same))
              + (if more > 0 then " and ${toString more} more" else "")
            ) f)
          ];
    in
    concatMap of faults;
  listed = 20;

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
rec {
  # Attributes may contain names that people wrote, so control characters are escaped for terminals.
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

  # A fault if a condition holds.
  # faultIf :: Bool -> { id, place, problem, value, remedy } -> [Fault]
  faultIf = condition: fields: if condition then [ (fault fields) ] else [ ];

  # Sorts by place, rule and value.
  # order :: [Fault] -> [Fault]
  order = sort before;
  # The faults that withhold documents.
  # errors :: [Fault] -> [Fault]
  errors = filter (f: f.severity == "error");

  # The text that is thrown for the faults of a cluster.
  # report :: String -> [Fault] -> String
  report =
    name: faults:
    "cluster ${name} has ${count (length faults) "fault"}:\n"
    + concatStringsSep "\n" (map (l: "  " + l) (lines faults));
}
