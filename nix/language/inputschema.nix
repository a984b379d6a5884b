# The topology language as a JSON Schema, for people who generate a topology or write it as JSON.
# schema/input.schema.json is generated from it. The schema does not contain rules about several
# attributes, or formats that need more than a pattern. Only the compiler checks these.
let
  inherit (builtins)
    attrNames
    elem
    filter
    fromJSON
    isBool
    isInt
    isString
    mapAttrs
    match
    ;
  inherit (import ./.) cluster;
  exampleOf = import ./examples.nix;

  schema =
    about:
    if about ? short then
      removeAttrs (schema (removeAttrs about [ "short" ])) [ "type" ]
      // {
        anyOf = [
          about.short.json
          { type = "object"; }
        ];
      }
    else if about.kind == "record" then
      let
        fields = removeAttrs about.fields (
          filter (n: about.fields.${n}.about.json or true == null) (attrNames about.fields)
        );
      in
      {
        type = "object";
        properties = mapAttrs property fields;
        required = filter (n: fields.${n} ? hint) (attrNames fields);
        additionalProperties = if about ? others then schema about.others.about else false;
      }
    else if about.kind == "list" then
      {
        type = "array";
        items = schema about.of;
      }
    else if about.kind == "attrs" then
      {
        type = "object";
        additionalProperties = schema about.of;
      }
      // (if about ? names then { propertyNames = about.names; } else { })
    else if about.kind == "enum" then
      { enum = about.choices; }
    else
      about.json;

  # Attributes for which the compiler accepts null.
  nullable =
    f:
    f ? default
    && elem f.default [
      null
      ""
    ];

  property =
    name: f:
    let
      # The hint of a required attribute is an example in Nix. Strings, numbers and lists of them
      # are read as JSON.
      hint = match "\"[^\"\\]*\"|[0-9]+|\\[ \"[^\"\\]*\" ]" (f.hint or "");
      example = if hint == null then exampleOf name f.about else { example = fromJSON f.hint; };
      default = f.default or null;
    in
    (
      if nullable f then
        {
          anyOf = [
            (schema f.about)
            { type = "null"; }
          ];
        }
      else
        schema f.about
    )
    // {
      description = f.doc;
    }
    // (if example == { } then { } else { examples = [ example.example ]; })
    // (
      if isInt default || isBool default || isString default && default != "" then
        { inherit default; }
      else
        { }
    );
in
{
  "$schema" = "https://json-schema.org/draft/2020-12/schema";
  title = "input";
  description = "A topology as people and programs write it: the arguments of mkCluster, as JSON. Files of a folder are parts of it: services/wiki.json is /properties/services/additionalProperties.";
}
// schema cluster.about
