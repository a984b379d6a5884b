# Types of the topology language. A type is { about; zero; invalid; faults; clean; }, some with more:
#   about            the description as data, for language/reference.nix and modules/topology.nix
#   zero             stands for a value that was not written
#   invalid          stands for a wrong value: other checks skip it
#   faults place v   the faults of v, as a list
#   clean v          v with every wrong part replaced
#   valid v          whether v itself is valid; not every type has it
#   named name v     for records: clean v with its name
# The result of `clean` is safe to compute with, whatever was written. So one run finds faults of
# shape and of meaning together, without stack traces.
let
  inherit (builtins)
    all
    elemAt
    genList
    isAttrs
    isList
    length
    tryEval
    ;

  scalars = import ./scalar.nix;
  inherit (scalars) bad matches;

  inherit (import ../../lib/fault.nix) fault;
  inherit (import ./leaks.nix) isFile;
  inherit (import ./attributes.nix) together;

  listOf = type: {
    about = {
      kind = "list";
      of = type.about;
    };
    zero = [ ];
    invalid = [ type.invalid ];
    faults =
      place: v:
      if isList v then
        let
          at = i: "${place}[${toString i}]";
        in
        together (i: type.faults (at i) (elemAt v i)) at (genList (i: i) (length v))
      else
        bad {
          want = "a list";
          hint = "put it in brackets: [ … ]";
        } place v;
    clean =
      v:
      if !isList v then
        [ type.invalid ]
      else if type ? valid && (tryEval (all type.valid v)).value then
        v
      else
        map (
          e:
          let
            try = tryEval e;
          in
          if try.success then type.clean try.value else type.invalid
        ) v;
  };
in
{
  inherit (scalars) between enum scalar;
  inherit (import ./sets.nix)
    attrsOf
    extended
    named
    record
    ;
  inherit isFile listOf matches;

  # A field of a record.
  of = doc: type: { inherit doc type; };
  default = doc: value: type: {
    inherit doc type;
    default = value;
  };
  required = doc: hint: type: {
    inherit doc type hint;
    required = true;
  };

  # A record, or a value that stands for a record with one attribute.
  # instead :: String -> Type -> Type -> Type
  instead =
    attribute: short: record:
    let
      whole = v: if isAttrs v then v else { ${attribute} = short.clean v; };
    in
    record
    // {
      about = record.about // {
        short = {
          inherit attribute;
          inherit (short.about) json ok want;
        };
      };
      faults = place: v: (if isAttrs v then record else short).faults place v;
      clean = v: record.clean (whole v);
      named = name: v: record.named name (whole v);
    };

  # A list with a maximum length.
  # atMost :: Int -> Type -> Type
  atMost =
    most: type:
    let
      list = listOf type;
    in
    list
    // {
      faults =
        place: v:
        if isList v && length v > most then
          bad {
            want = "at most ${toString most} of them";
            hint = "take some out";
          } place v
        else
          list.faults place v;
    };

  # A list with an element. The hint says what to write instead of an empty one.
  # atLeastOne :: String -> Type -> Type
  atLeastOne =
    hint: type:
    let
      list = listOf type;
    in
    list
    // {
      faults =
        place: v:
        if v == [ ] then
          [
            (fault {
              id = "FL002";
              inherit place;
              problem = "want at least one, found";
              value = "an empty list";
              remedy = hint;
            })
          ]
        else
          list.faults place v;
    };

  # A list; one element needs no brackets.
  # oneOrMore :: Type -> Type
  oneOrMore =
    type:
    let
      list = listOf type;
      inherit (type.about) ok;
    in
    list
    // {
      about = {
        kind = "scalar";
        want = "${type.about.want}; or a list of them";
        json.anyOf = [
          type.about.json
          {
            type = "array";
            items = type.about.json;
          }
        ];
        inherit (type.about) example;
        ok = v: if isList v then all ok v else ok v;
      };
      faults = place: v: (if isList v then list else type).faults place v;
      clean = v: list.clean (if isList v then v else [ v ]);
    };
}
