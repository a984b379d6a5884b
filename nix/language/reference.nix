# The reference of the language, written from its shape: Markdown for reference.md.
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    isAttrs
    toJSON
    ;
  inherit (import ./.) cluster;

  # A set with names of people's choice is written hosts.<name>.
  inner =
    place: about:
    if about.kind == "record" then
      [ { inherit place about; } ]
    else if about.kind == "attrs" then
      inner "${place}.<name>" about.of
    else if about.kind == "list" then
      inner "${place}[…]" about.of
    else
      [ ];

  what =
    about:
    if about.kind == "scalar" then
      about.want
    else if about.kind == "enum" then
      concatStringsSep ", " (map (c: "`${toJSON c}`") about.choices)
    else if about.kind == "list" then
      "list: ${what about.of}"
    else if about.kind == "attrs" then
      "by name: ${what about.of}"
    else
      "see below";

  value =
    v:
    if v == null then
      "none"
    else if v == "" then
      "none"
    else if v == [ ] then
      "`[ ]`"
    else if isAttrs v then
      "`{ }`"
    else
      "`${toJSON v}`";

  row =
    name: f:
    "| `${name}` | ${what f.about} | ${
      if f ? default then value f.default else "**required**"
    } | ${f.doc} |\n";

  table =
    { place, about }:
    "\n## ${
      if place == "" then "mkCluster" else "`${place}`"
    }\n\n| attribute | value | default | |\n| --- | --- | --- | --- |\n"
    + concatStringsSep "" (map (n: row n about.fields.${n}) (attrNames about.fields))
    + concatStringsSep "" (
      map table (
        concatMap (n: inner (if place == "" then n else "${place}.${n}") about.fields.${n}.about) (
          attrNames about.fields
        )
        ++ (if about ? others then inner "${place}.${about.others.called}" about.others.about else [ ])
      )
    );
in
"# Reference of the topology language\n\nWritten from [language](language) by [reference.nix](language/reference.nix); [README.md](README.md) explains it by example.\n"
+ table {
  place = "";
  inherit (cluster) about;
}
