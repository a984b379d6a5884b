# Types of sets of attributes; types.nix defines what a type is.
let
  inherit (builtins)
    attrNames
    elem
    filter
    intersectAttrs
    isAttrs
    isString
    map
    mapAttrs
    match
    stringLength
    toJSON
    tryEval
    ;
  inherit (import ./lib.nix) toSet;
  inherit (import ./scalar.nix) bad matches;
  inherit (import ./text.nix) confidential show suggest;
  inherit (import ./fault.nix) fault;
  inherit (import ./leaks.nix) leaks;
  inherit (import ./thrown.nix) together;

  join =
    place: n:
    let
      key = if match "[A-Za-z_][A-Za-z0-9_-]*" n != null then n else toJSON n;
    in
    if place == "" then key else "${place}.${key}";

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
  cleaned =
    type: v:
    let
      try = tryEval v;
    in
    if try.success then type.clean try.value else type.invalid;
in
{
  # Free names, any number of them.
  # attrsOf :: Type -> Type
  attrsOf = type: {
    about = {
      kind = "attrs";
      of = type.about;
    };
    zero = { };
    invalid = { };
    faults = attrs "a set" "write { name = …; }" (_: type.faults);
    clean = v: if isAttrs v then mapAttrs (_: cleaned type) v else { };
  };

  # Names that become parts of IDs; longer ones than max would break the names made from
  # them. `entry` finds the faults of one of them, in the set at `place`.
  named =
    {
      what,
      max ? 63,
      reserved ? [ ],
    }:
    type:
    let
      check =
        n: place: v:
        (
          if matches "[a-z0-9]([a-z0-9-]*[a-z0-9])?" n && stringLength n <= max then
            [ ]
          else
            [
              (fault {
                id = "FL004";
                inherit place;
                problem = "not a ${what} name";
                value = show n;
                remedy = "use at most ${toString max} lower-case letters, digits and inner hyphens";
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
          pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";
          maxLength = max;
        };
      };
      zero = { };
      invalid = { };
      entry =
        place: n: v:
        together (_: check n (join place n) v) (join place) [ n ];
      faults = attrs "a set of ${what}s" "write { name = { … }; }" check;
      # A record has its name.
      clean =
        v:
        if !isAttrs v then
          { }
        else
          mapAttrs (
            n: e:
            let
              try = tryEval e;
            in
            if !try.success then
              (type.lost or (_: type.invalid)) n
            else if type ? named then
              type.named n try.value
            else
              type.clean try.value
          ) v;
    };

  inherit (import ./extended.nix) extended;

  # fields.<name> = { doc; type; default ? type.zero; } or { doc; type; required = true; hint; }
  # Where there is no default, null may be written for it.
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
          if !try.success then
            type.invalid
          else if try.value == null then
            absent.${n}
          else
            type.clean try.value
        else
          cleaned type
      ) types;
      # With more attributes that are known already.
      known =
        more: v:
        if isAttrs v then
          absent // (mapAttrs (n: cleaners.${n}) (intersectAttrs cleaners v) // more)
        else
          invalid // more;
      # What stands for the attributes that a set does not have.
      absent = mapAttrs (_: f: if f ? required then f.type.invalid else f.default or f.type.zero) fields;
      invalid = mapAttrs (_: f: f.type.invalid) fields;
      nullable = toSet (
        filter (n: !fields.${n} ? required && (absent.${n} == null || absent.${n} == "")) names
      );
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
        attrs "a set" "write { … } with the attributes of ${what}" (
          n: at: value:
          if types ? ${n} && value == null && nullable ? ${n} then
            [ ]
          else if types ? ${n} then
            types.${n}.faults at value
          else
            hidden n at value
            ++ [
              (fault {
                id = "FL001";
                place = at;
                problem = "${what} has no attribute";
                value = n;
                remedy = suggest "attribute" n names;
              })
            ]
        ) place v
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
