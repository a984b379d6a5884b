# The topology language as typed options of nixpkgs' module system: florete.clusters.<name>. The
# options are generated from the records of the language, so that attributes, descriptions and
# defaults are written once.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  inherit (import ../nix/language) cluster;
  exampleOf = import ../nix/language/examples.nix;

  value =
    { want, ok, ... }:
    types.mkOptionType {
      name = want;
      description = want;
      check = ok;
      merge = lib.options.mergeEqualOption;
    };

  typeOf =
    about:
    if about ? short then
      types.coercedTo (value about.short) (v: { ${about.short.attribute} = v; }) (
        typeOf (removeAttrs about [ "short" ])
      )
    else if about.kind == "record" then
      types.submodule (
        {
          options = builtins.mapAttrs option about.fields;
        }
        // lib.optionalAttrs (about ? others) { freeformType = types.attrsOf (typeOf about.others.about); }
      )
    else if about.kind == "list" then
      types.listOf (typeOf about.of)
    else if about.kind == "attrs" then
      types.attrsOf (typeOf about.of)
    else if about.kind == "enum" then
      types.enum about.choices
    else
      value about;

  # Optional values are null if they are not written, and the compiler adds its default. Lists and
  # sets are merged and never null, so they have the default here.
  option =
    name: f:
    let
      container = builtins.elem f.about.kind [
        "list"
        "attrs"
      ];
      type = typeOf f.about;
    in
    mkOption (
      {
        description = f.doc;
        type = if f ? default && !container then types.nullOr type else type;
      }
      // (if f ? hint then { example = lib.literalExpression f.hint; } else exampleOf name f.about)
      // (
        if !(f ? default) then
          { }
        else if container then
          { inherit (f) default; }
        else
          {
            default = null;
            defaultText = lib.literalExpression (
              if f.about.kind == "record" then "{ }" else builtins.toJSON f.default
            );
          }
      )
    );

  # Removes values that nobody wrote.
  written =
    about: v:
    if v == null then
      null
    else if about.kind == "record" then
      lib.filterAttrs (n: v: v != null && !(v == { } && about.fields.${n} or { } ? default)) (
        builtins.mapAttrs (n: written (about.fields.${n} or about.others).about) v
      )
    else if about.kind == "attrs" then
      builtins.mapAttrs (_: written about.of) v
    else if about.kind == "list" then
      map (written about.of) v
    else
      v;
in
{
  options.florete = {
    clusters = mkOption {
      description = "Clusters by name.";
      default = { };
      type = types.attrsOf (
        types.submodule (
          { name, ... }: {
            options = builtins.mapAttrs option (removeAttrs cluster.about.fields [ "self" ]);
            config.name = lib.mkDefault name;
          }
        )
      );
    };
    topologies = mkOption {
      description = "What mkCluster is given for each of them.";
      readOnly = true;
      type = types.attrsOf types.raw;
      # The compiler reports a value that throws as a fault without the message. deepSeq lets the
      # module system report its errors first.
      default = builtins.mapAttrs (
        _: c:
        let
          topology = written cluster.about ({ self = null; } // c);
        in
        builtins.deepSeq topology topology
      ) config.florete.clusters;
    };
  };
}
