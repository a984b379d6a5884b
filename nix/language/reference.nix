# Generates the reference of the topology language in Markdown, docs/reference/topology.md. Each
# record is a section, and each attribute is a row with its own anchor, such as #hostsname-address.
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    filter
    isAttrs
    isString
    split
    toJSON
    ;
  inherit (import ./.) cluster;
  inherit (import ../lib/text.nix) toLower;

  # The place of entries whose names people choose is written hosts.<name>.
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
  within =
    { place, about }:
    concatMap (n: inner (if place == "" then n else "${place}.${n}") about.fields.${n}.about) (
      attrNames about.fields
    )
    ++ (if about ? others then inner "${place}.${about.others.called}" about.others.about else [ ]);
  sections = section: [ section ] ++ concatMap sections (within section);

  # The anchor that GitHub and mdBook make from the heading.
  anchor =
    place:
    if place == "" then
      "mkcluster"
    else
      toLower (concatStringsSep "" (filter isString (split "[^A-Za-z0-9_-]+" place)));

  type =
    place: about:
    if about.kind == "scalar" then
      about.want
    else if about.kind == "enum" then
      "one of ${concatStringsSep ", " (map (c: "`${toJSON c}`") about.choices)}"
    else if about.kind == "list" then
      "list: ${type "${place}[…]" about.of}"
    else if about.kind == "attrs" then
      "set by name: ${type "${place}.<name>" about.of}"
    else
      (if about ? short then "${about.short.want}, or " else "") + "[record](#${anchor place})";

  default =
    f:
    if !(f ? default) then
      "**required**"
    else if f.default == null || f.default == "" then
      "not set"
    else if f.default == [ ] then
      "`[ ]`"
    else if isAttrs f.default then
      "`{ }`"
    else
      "`${toJSON f.default}`";

  row =
    place: name: f:
    let
      at = if place == "" then name else "${place}.${name}";
    in
    "| <a id=\"${anchor place}-${toLower name}\"></a>`${name}` | ${type at f.about} | ${default f} | ${f.doc} |\n";

  title = place: if place == "" then "mkCluster" else "`${place}`";
  section =
    { place, about }:
    "\n## ${title place}\n\n| attribute | value | default | description |\n| --- | --- | --- | --- |\n"
    + concatStringsSep "" (map (n: row place n about.fields.${n}) (attrNames about.fields));

  all = sections {
    place = "";
    inherit (cluster) about;
  };
in
''
  # Topology

  This page lists every attribute of a topology, for an operator who looks one up.
  [The topology by example](../explain/topology.md) introduces them.

  <!-- Written from nix/language: go test ./nix/operator/compile -run Reference -update -->

  - A *record* has the attributes of its section. A *set by name* has names that you choose, written
    `<name>` here, and a list is written `[…]`.
  - "Not set" is a default. `null` and an empty string mean the same as leaving the attribute out.
  - A duration is a whole number in the unit that its description names. Times and dates are in UTC:
    `"2027-01-31"` or `"2027-01-31T18:00Z"`.
  - Each attribute has an address: the anchor of its section, a hyphen, and its name in lower case,
    such as [`#hostsname-address`](#hostsname-address).

  ## Contents

''
+ concatStringsSep "" (map (s: "- [${title s.place}](#${anchor s.place})\n") all)
+ concatStringsSep "" (map section all)
