# Faults of things of services that providers would know by one name.
#
#   things  { key; place; value; } of each: what providers know it by, where the name is written or
#           would be, and the name that people see
#
# lib -> [thing] -> place -> [Fault]
lib: things:
let
  inherit (builtins) filter groupBy head;
  by = groupBy (thing: thing.key) things;
  at = groupBy (thing: thing.place) things;
in
place:
let
  thing = head at.${place};
  others = filter (other: other.place != place) by.${thing.key};
in
if !at ? ${place} || others == [ ] then
  [ ]
else
  [
    (lib.fault {
      id = "FL173";
      inherit place;
      problem = "${(head others).place} has the same name at the provider:";
      value = lib.show thing.value;
      remedy = "choose another name for one of them, or take called out";
    })
  ]
