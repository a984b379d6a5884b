# Shared by types of sets of attributes. Values that throw are reported with the other faults.
let
  inherit (builtins)
    attrNames
    concatMap
    isAttrs
    tryEval
    ;
  inherit (import ./scalar.nix) bad;
  inherit (import ../../lib/fault.nix) fault;
  inherit (import ../../lib/text.nix) attribute;

  # Nix does not reveal the message of a throw.
  throws = place: [
    (fault {
      id = "FL002";
      inherit place;
      problem = "evaluating it ends with";
      value = "a throw or a failed assertion";
      remedy = "look for it in what is written there, which says more when evaluated alone";
    })
  ];
in
rec {
  # The faults of several parts. If one throws, each is tried alone.
  # together :: (a -> [Fault]) -> (a -> String) -> [a] -> [Fault]
  together =
    faults: at: parts:
    let
      all = concatMap faults parts;
      alone =
        part:
        let
          try = tryEval (faults part == [ ]);
        in
        if try.success then faults part else throws (at part);
    in
    if (tryEval (all == [ ])).success then all else concatMap alone parts;

  # The place of an attribute.
  # join :: String -> String -> String
  join =
    place:
    let
      before = if place == "" then "" else "${place}.";
    in
    n: before + attribute n;

  # The faults of each attribute.
  # attrs :: String -> String -> (String -> String -> Any -> [Fault]) -> String -> Any -> [Fault]
  attrs =
    what: hint: each: place: v:
    let
      at = join place;
    in
    if isAttrs v then
      together (n: each n (at n) v.${n}) at (attrNames v)
    else
      bad {
        want = what;
        inherit hint;
      } (if place == "" then "mkCluster" else place) v;

  # v cleaned, even if it throws.
  # cleaned :: Type -> Any -> Any
  cleaned =
    type:
    if type ? valid then
      v: if (tryEval (type.valid v)).value then v else type.invalid
    else
      v:
      let
        try = tryEval v;
      in
      if try.success then type.clean try.value else type.invalid;
}
