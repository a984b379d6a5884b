# The format of a document: the newest "since" of the attributes that it has, by the schemas.
# Only attributes that are newer than 1.0 are looked for.
# String -> AttrSet -> String
let
  inherit (builtins)
    any
    attrNames
    attrValues
    compareVersions
    concatMap
    elemAt
    filter
    fromJSON
    head
    isAttrs
    isList
    mapAttrs
    match
    readFile
    removeAttrs
    sort
    tail
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

  # [ { path = [ "forwarder" "publish" "*" "identity" ]; since = "1.1"; } ]; "*" is each.
  newer =
    of: path: unresolved:
    let
      at = follow of unresolved;
      below = step: schema: newer at.of (path ++ [ step ]) schema;
    in
    (
      if at.schema ? since then
        [
          {
            inherit path;
            inherit (at.schema) since;
          }
        ]
      else
        [ ]
    )
    ++ concatMap (name: below name at.schema.properties.${name}) (attrNames at.schema.properties or { })
    ++ (if isAttrs at.schema.items or null then below "*" at.schema.items else [ ])
    ++ (
      if isAttrs at.schema.additionalProperties or null then
        below "*" at.schema.additionalProperties
      else
        [ ]
    );

  has =
    path: value:
    let
      step = head path;
      rest = has (tail path);
    in
    path == [ ]
    || (
      if step == "*" then
        any rest (if isList value then value else attrValues value)
      else
        value ? ${step} && rest value.${step}
    );

  # Of each kind of document, the newest first.
  attributes = mapAttrs (
    kind: schema: sort (a: b: compareVersions a.since b.since > 0) (newer kind [ ] schema)
  ) schemas;
in
kind:
let
  candidates = attributes.${kind};
in
value:
let
  found = filter (a: has a.path value) candidates;
in
if candidates == [ ] || found == [ ] then "1.0" else (head found).since
