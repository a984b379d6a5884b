# A document: the exact bytes of a body, and of the envelope that names them.
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

  # What finds the formats of all that some values have, made once for a schema: `since` of the
  # values themselves, of their attributes and of their elements. null where nothing is newer.
  # All elements of a list are looked at together: a manifest has thousands of entries.
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

  # The format of a document: the newest "since" of the attributes that it has, by the schemas. Only
  # attributes that are newer than 1.0 are looked for.
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
