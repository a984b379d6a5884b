# Removes the warnings that the topology acknowledges. An acknowledgement without a warning is a
# warning itself: it would hide the next one.
# clean topology -> [Fault] -> [Fault]
clean:
let
  inherit (builtins)
    any
    concatLists
    elemAt
    filter
    genList
    head
    length
    ;
  inherit (import ../lib/fault.nix) fault;

  # An acknowledgement without an id or place has been reported.
  list = filter (a: a.id != "" && a.place != "") clean.acknowledge;
  index =
    a: head (filter (i: elemAt clean.acknowledge i == a) (genList (i: i) (length clean.acknowledge)));
  meets = f: a: a.id == f.id && a.place == f.place;
in
faults:
let
  stale =
    a:
    let
      same = filter (f: meets f a) faults;
    in
    if same == [ ] then
      "there is nothing to acknowledge, at ${a.place},"
    else if any (f: f.severity == "error") same then
      "only warnings can be acknowledged, not"
    else
      null;
in
if list == [ ] then
  faults
else
  filter (f: f.severity == "error" || !any (meets f) list) faults
  ++ concatLists (
    genList (
      i:
      let
        a = elemAt list i;
        problem = stale a;
      in
      if problem == null then
        [ ]
      else
        [
          (fault {
            id = "FL042";
            place = "acknowledge[${toString (index a)}]";
            inherit problem;
            value = a.id;
            remedy = "take the acknowledgement out";
          })
        ]
    ) (length list)
  )
