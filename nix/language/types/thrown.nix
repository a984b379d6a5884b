# Values that throw are faults among the others.
let
  inherit (builtins) concatMap tryEval;
  inherit (import ../../lib/fault.nix) fault;

  # Nix does not say what it throws.
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
{
  # All faults of several parts. Only where one throws is each tried alone.
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
}
