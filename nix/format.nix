# The format of a document: the newest "since" of the attributes that it has, by the schemas.
# Only attributes that are newer than 1.0 are looked for.
# String -> AttrSet -> String
let
  inherit (builtins)
    attrNames
    attrValues
    compareVersions
    concatMap
    elemAt
    filter
    foldl'
    fromJSON
    intersectAttrs
    isAttrs
    isList
    mapAttrs
    match
    readFile
    removeAttrs
    ;

  schemas = mapAttrs (_: file: fromJSON (readFile file)) {
    manifest = ./schema/manifest.schema.json;
    policy = ./schema/policy.schema.json;
  };

  # A schema with the one that it refers to: "#/$defs/id", "manifest.schema.json#/$defs/id".
  follow =
    of: schema:
    let
      ref = match "(([a-z]+)\\.schema\\.json)?#/\\$defs/(.*)" schema."$ref";
      to = if elemAt ref 1 == null then of else elemAt ref 1;
    in
    if schema ? "$ref" then
      {
        of = to;
        schema = schemas.${to}."$defs".${elemAt ref 2} // removeAttrs schema [ "$ref" ];
      }
    else
      { inherit of schema; };

  # What to look for in a value: `since` of itself, and in its attributes and elements what
  # they lead to. null where nothing is newer.
  newer =
    of: unresolved:
    let
      at = follow of unresolved;
      below = newer at.of;
      attributes = filterAttrs (_: n: n != null) (mapAttrs (_: below) (at.schema.properties or { }));
      each =
        if isAttrs at.schema.items or null then
          below at.schema.items
        else if isAttrs at.schema.additionalProperties or null then
          below at.schema.additionalProperties
        else
          null;
    in
    if at.schema ? since || attributes != { } || each != null then
      {
        since = if at.schema ? since then [ at.schema.since ] else [ ];
        inherit attributes each;
      }
    else
      null;
  filterAttrs =
    ok: set: removeAttrs set (filter (n: !ok n set.${n}) (attrNames set));

  # The formats of all that a value has.
  # found :: Newer -> Any -> [String]
  found =
    newer: value:
    newer.since
    ++ (
      if isAttrs value then
        concatMap (name: found newer.attributes.${name} value.${name}) (
          attrNames (intersectAttrs newer.attributes value)
        )
      else
        [ ]
    )
    ++ (
      if newer.each == null then
        [ ]
      else
        concatMap (found newer.each) (if isList value then value else attrValues value)
    );

  ofKinds = mapAttrs newer schemas;
in
kind:
let
  newer = ofKinds.${kind};
in
value:
foldl' (newest: since: if compareVersions since newest > 0 then since else newest) "1.0" (
  if newer == null then [ ] else found newer value
)
