# A fault is data: { id, severity, place, problem, value, remedy }. Ids are stable
# and never reused; README.md lists them. All faults of a topology are thrown
# together, by default.nix.
let
  inherit (builtins) concatStringsSep length sort;

  line = f: "${f.id} ${f.place}: ${f.problem} ${f.value}; ${f.remedy}";

  before = a: b:
    if a.place != b.place then a.place < b.place
    else if a.id != b.id then a.id < b.id
    else a.value < b.value;
in
{
  fault = { id, place, problem, value, remedy }: {
    inherit id place problem value remedy;
    severity = "error";
  };

  order = sort before;

  report = name: faults:
    "cluster ${name} has ${toString (length faults)} ${if length faults == 1 then "fault" else "faults"}:\n"
    + concatStringsSep "\n" (map (f: "  " + line f) faults);
}
