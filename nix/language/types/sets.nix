# Types of sets of attributes; default.nix defines what a type is.
let
  inherit (builtins)
    attrNames
    filter
    intersectAttrs
    isAttrs
    isString
    mapAttrs
    toJSON
    tryEval
    ;
  inherit (import ../../lib) toSet;
  inherit (import ./attributes.nix) attrs cleaned;
  inherit (import ../../lib/text.nix) confidential suggest;
  inherit (import ../../lib/fault.nix) fault;
  inherit (import ./leaks.nix) leaks;
in
{
  # A set with any names.
  # attrsOf :: Type -> Type
  attrsOf = type: {
    about = {
      kind = "attrs";
      of = type.about;
    };
    zero = { };
    invalid = { };
    faults = attrs "a set" "write { name = ${
      if type.about ? example then toJSON type.about.example else "…"
    }; }" (_: type.faults);
    clean = v: if isAttrs v then mapAttrs (_: cleaned type) v else { };
  };

  # A record with further attributes, `others`, whose names people choose and whose values are sets.
  # The reference shows their name as `called`.
  # extended :: Type -> String -> Type -> Type
  extended =
    type: called: others:
    let
      named = v: filter (n: !type.about.fields ? ${n} && (tryEval (isAttrs v.${n})).value) (attrNames v);
      own = v: removeAttrs v (named v);
      rest = v: intersectAttrs (toSet (named v)) v;
    in
    type
    // {
      about = type.about // {
        others = {
          inherit called;
          about = others.about.of;
        };
      };
      faults =
        place: v:
        if isAttrs v then
          type.faults place (own v) ++ others.faults place (rest v)
        else
          type.faults place v;
      clean = v: if isAttrs v then type.clean (own v) // others.clean (rest v) else type.clean v;
    };

  inherit (import ./named.nix) named;

  # fields.<name> = { doc; type; default ? type.zero; } or { doc; type; required = true; hint; }
  # null may be written for an optional field whose default is null or "".
  # record :: String -> { name = Field; } -> Type
  record =
    what: fields:
    let
      names = attrNames fields;
      types = mapAttrs (_: f: f.type) fields;
      required = filter (n: fields.${n} ? required) names;
      cleaners = mapAttrs (
        n: type:
        if nullable ? ${n} then
          v:
          let
            try = tryEval v;
          in
          if type ? valid && (tryEval (v != null && type.valid v)).value then
            v
          else if !try.success then
            type.invalid
          else if try.value == null then
            absent.${n}
          else
            type.clean try.value
        else
          cleaned type
      ) types;
      # The fields with further ones that are already known.
      known =
        more: v:
        if isAttrs v then
          absent // (mapAttrs (n: cleaners.${n}) (intersectAttrs cleaners v) // more)
        else
          invalid // more;
      # The values of attributes that a set does not contain.
      absent = mapAttrs (_: f: if f ? required then f.type.invalid else f.default or f.type.zero) fields;
      invalid = mapAttrs (_: f: f.type.invalid) fields;
      nullable = toSet (
        filter (n: !fields.${n} ? required && (absent.${n} == null || absent.${n} == "")) names
      );
      # Computed once for each attribute of the language, because it is called for each one written.
      checks = mapAttrs (
        n: type:
        if nullable ? ${n} then
          at: value: if value == null then [ ] else type.faults at value
        else
          type.faults
      ) types;
      unknown =
        n: at: value:
        hidden n at value
        ++ [
          (fault {
            id = "FL001";
            place = at;
            problem = "${what} has no attribute";
            value = n;
            remedy = suggest "attribute" n names;
          })
        ];
      hidden =
        n: at: value:
        let
          leaked = leaks at value;
        in
        if leaked == [ ] && isString value && confidential n then
          [
            (fault {
              id = "FL026";
              place = at;
              problem = "found";
              value = "what its name calls a secret (not shown)";
              remedy = "take it out of the repository and its history, replace it, and deliver the new one with services.<name>.files";
            })
          ]
        else
          leaked;
    in
    {
      inherit invalid;
      about = {
        kind = "record";
        inherit what;
        fields = mapAttrs (
          n: f:
          {
            inherit (f.type) about;
            inherit (f) doc;

          }
          // (if f ? required then { inherit (f) hint; } else { default = absent.${n}; })
        ) fields;
      };
      zero = mapAttrs (_: f: f.default or f.type.zero) fields;
      faults =
        place: v:
        attrs "a set" "write { … } with the attributes of ${what}" (n: checks.${n} or (unknown n)) place v
        ++ (
          if !isAttrs v then
            [ ]
          else
            map (
              n:
              fault {
                id = "FL003";
                place = if place == "" then "mkCluster" else place;
                problem = "missing attribute";
                value = n;
                remedy = "write ${n} = ${fields.${n}.hint};";
              }
            ) (filter (n: !v ? ${n}) required)
        );
      clean = known { };
      named = name: known { inherit name; };
      lost = name: invalid // { inherit name; };
    };
}
