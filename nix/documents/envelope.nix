# A document: the exact bytes of a body, and of the envelope with its digest.
# { cluster, serial, rev } -> kind -> hostName -> body -> { body, envelope :: String }
let
  inherit (builtins)
    attrValues
    catAttrs
    compareVersions
    concatMap
    elemAt
    filter
    foldl'
    fromJSON
    isAttrs
    isList
    mapAttrs
    match
    readFile
    toJSON
    ;
  inherit (import ../lib/names.nix) sri;

  schemas = mapAttrs (_: file: fromJSON (readFile file)) {
    manifest = ../schema/manifest.schema.json;
    policy = ../schema/policy.schema.json;
  };

  # The schema to which a schema refers: "#/$defs/id", "manifest.schema.json#/$defs/id".
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

  # Makes a function that finds the formats of some values: `since` of the values, of their
  # attributes and of their elements. The function is made once for a schema, and null if nothing in
  # it is newer than 1.0. It handles all elements of a list together, because a manifest has
  # thousands of entries.
  # finder :: "manifest" | "policy" -> Schema -> ([Any] -> [String]) | null
  finder =
    of: unresolved:
    let
      at = follow of unresolved;
      below = finder at.of;
      attributes = filter (a: a.formats != null) (
        attrValues (
          mapAttrs (name: schema: {
            inherit name;
            formats = below schema;
          }) (at.schema.properties or { })
        )
      );
      each =
        if isAttrs at.schema.items or null then
          below at.schema.items
        else if isAttrs at.schema.additionalProperties or null then
          below at.schema.additionalProperties
        else
          null;
      elements = value: if isList value then value else attrValues value;
    in
    if !at.schema ? since && attributes == [ ] && each == null then
      null
    else
      values:
      let
        sets = filter isAttrs values;
      in
      if values == [ ] then
        [ ]
      else
        (if at.schema ? since then [ at.schema.since ] else [ ])
        ++ concatMap (a: a.formats (catAttrs a.name sets)) attributes
        ++ (if each == null then [ ] else each (concatMap elements values));

  ofKinds = mapAttrs finder schemas;

  # The format of a document: the newest "since" of its attributes in the schemas. Only attributes
  # newer than 1.0 are considered.
  # formatOf :: String -> AttrSet -> String
  formatOf =
    kind: value:
    foldl' (newest: since: if compareVersions since newest > 0 then since else newest) "1.0" (
      if ofKinds.${kind} == null then [ ] else ofKinds.${kind} [ value ]
    );
in
{
  cluster,
  serial,
  rev,
}:
kind: host: value:
let
  body = toJSON value;
in
{
  inherit body;
  envelope = toJSON {
    schema = "florete.envelope/v1";
    format = formatOf kind value;
    digest = sri body;
    inherit
      cluster
      host
      kind
      rev
      serial
      ;
  };
}
