# Types of single values; default.nix defines what a type is.
let
  inherit (builtins)
    concatStringsSep
    elem
    elemAt
    isInt
    isString
    match
    stringLength
    toJSON
    ;
  inherit (import ../../lib) invalid;
  inherit (import ../../lib/text.nix) harmless show;
  inherit (import ../../lib/fault.nix) fault;
  inherit (import ./leaks.nix) leaks;
in
rec {
  # The length bound keeps the regular expression engine away from whole files.
  # matches :: String -> Any -> Bool
  matches = re: v: isString v && stringLength v < 4096 && match re v != null;

  # The fault of a value of the wrong form.
  # bad :: { want, hint, … } -> String -> Any -> [Fault]
  bad =
    {
      id ? "FL002",
      want,
      hint,
      hidden ? false,
      ...
    }:
    place: v:
    let
      leaked = leaks place v;
    in
    if leaked != [ ] then
      leaked
    else
      [
        (fault {
          inherit id place;
          problem = "want ${want}, found";
          value = if hidden && isString v then "something else (not shown)" else show v;
          remedy = hint;
        })
      ];

  # A type from a predicate `ok` and a function `to`, which `clean` applies to valid values. `json`
  # is its JSON Schema, by default that of strings, or null if JSON cannot express the value;
  # `example` is a value.
  # scalar :: { want, hint, ok, … } -> Type
  scalar =
    {
      ok,
      zero ? "",
      invalid ? zero,
      ...
    }@type:
    {
      inherit zero invalid;
      about = {
        kind = "scalar";
        inherit ok;
        inherit (type) want;
        json = type.json or { type = "string"; };
      }
      // (if type ? example then { inherit (type) example; } else { });
      faults =
        place: v:
        if !ok v then
          bad type place v
        # A quick check for nearly all values, before the search for keys and passwords.
        else if isInt v || isString v && harmless v then
          [ ]
        else
          leaks place v;
    }
    // (
      if type ? to then
        { clean = v: if ok v then type.to v else invalid; }
      else
        {
          valid = ok;
          clean = v: if ok v then v else invalid;
        }
    );

  # One of some strings; the first is the zero value.
  # enum :: [String] -> Type
  enum =
    choices:
    (scalar {
      want = "one of ${concatStringsSep ", " (map toJSON choices)}";
      hint = "write one of them";
      zero = elemAt choices 0;
      ok = v: elem v choices;
    })
    // {
      about = {
        kind = "enum";
        inherit choices;
      };
    };

  # A whole number between low and high.
  # between :: Int -> Int -> String -> Type
  between =
    low: high: what:
    scalar {
      want = "${what} from ${toString low} to ${toString high}";
      json = {
        type = "integer";
        minimum = low;
        maximum = high;
      };
      hint = "write a whole number in that range, without quotes";
      zero = low;
      invalid = invalid.number;
      ok = v: isInt v && v >= low && v <= high;
    };
}
