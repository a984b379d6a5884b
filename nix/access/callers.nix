# Groups identities by the services that they reach together. Sets are compared as a whole: a user
# reaches thousands of services, and no other identity of the host reaches most of them.
#
#   callers [ { id = "a"; reach = { x = 1; y = 2; }; } { id = "b"; reach = { y = 2; }; } ]
#   → [ { callers = [ "a" "b" ]; reach = { y = 2; }; } { callers = [ "a" ]; reach = { x = 1; }; } ]
#
# callers :: [Identity] -> [{ callers :: [id]; reach :: AttrSet; }], callers sorted
identities:
let
  inherit (builtins)
    attrNames
    filter
    foldl'
    intersectAttrs
    sort
    ;
  any = filter (part: part.reach != { });
  with' =
    parts:
    { id, reach, ... }:
    let
      shared = any (
        map (part: {
          callers = part.callers ++ [ id ];
          reach = intersectAttrs part.reach reach;
        }) parts
      );
      without = foldl' (left: s: removeAttrs left (attrNames s.reach));
      rest = part: part // { reach = without part.reach shared; };
      own = {
        callers = [ id ];
        inherit reach;
      };
    in
    shared ++ any (map rest (parts ++ [ own ]));
in
foldl' with' [ ] (sort (a: b: a.id < b.id) (any identities))
