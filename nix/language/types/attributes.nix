# What types of sets of attributes share.
let
  inherit (builtins)
    attrNames
    isAttrs
    match
    toJSON
    tryEval
    ;
  inherit (import ./scalar.nix) bad;
  inherit (import ./thrown.nix) together;
in
rec {
  # The place of an attribute.
  # join :: String -> String -> String
  join =
    place: n:
    let
      key = if match "[A-Za-z_][A-Za-z0-9_-]*" n != null then n else toJSON n;
    in
    if place == "" then key else "${place}.${key}";

  # The faults of each attribute.
  # attrs :: String -> String -> (String -> String -> Any -> [Fault]) -> String -> Any -> [Fault]
  attrs =
    what: hint: each: place: v:
    if isAttrs v then
      together (n: each n (join place n) v.${n}) (join place) (attrNames v)
    else
      bad {
        want = what;
        inherit hint;
      } (if place == "" then "mkCluster" else place) v;

  # v cleaned, whatever it throws.
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
