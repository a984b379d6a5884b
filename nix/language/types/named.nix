# The type of sets of named things.
let
  inherit (builtins)
    elem
    isAttrs
    mapAttrs
    stringLength
    tryEval
    ;
  inherit (import ./attributes.nix) attrs cleaned join together;
  inherit (import ./scalar.nix) matches;
  inherit (import ../../lib/text.nix) show;
  inherit (import ../../lib/fault.nix) fault;
in
{
  # Names become parts of IDs; `max` keeps the names made from them valid. `entry` finds the faults
  # of one entry, in the set at `place`.
  named =
    {
      what,
      max ? 63,
      reserved ? [ ],
      re ? "[a-z0-9]([a-z0-9-]*[a-z0-9])?",
      remedy ? "use at most ${toString max} lower-case letters, digits and inner hyphens",
    }:
    type:
    let
      isName = n: matches re n && stringLength n <= max;
      check =
        n: place: v:
        (
          if isName n then
            [ ]
          else
            [
              (fault {
                id = "FL004";
                inherit place;
                problem = "not a ${what} name";
                value = show n;
                inherit remedy;
              })
            ]
        )
        ++ (
          if !elem n reserved then
            [ ]
          else
            [
              (fault {
                id = "FL005";
                inherit place;
                problem = "reserved name";
                value = show n;
                remedy = "choose another name for this ${what}";
              })
            ]
        )
        ++ type.faults place v;
    in
    {
      about = {
        kind = "attrs";
        of = type.about;
        names = {
          pattern = "^${re}$";
          maxLength = max;
        };
      };
      zero = { };
      invalid = { };
      entry = place: n: v: together (_: check n (join place n) v) (join place) [ n ];
      faults = attrs "a set of ${what}s" "write { name = { … }; }" check;
      # Adds its name to a record.
      clean =
        v:
        if !isAttrs v then
          { }
        else if type ? named then
          mapAttrs (
            n: e:
            let
              try = tryEval e;
            in
            if try.success then type.named n try.value else (type.lost or (_: type.invalid)) n
          ) v
        else
          mapAttrs (_: cleaned type) v;
    };
}
