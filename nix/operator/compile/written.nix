# The topology of a cluster as the flake wrote it, for florctl service rename: its values, and where
# the text that concerns one service was written.
#
# mkCluster does not return what it was given, so that Nix can free it. Therefore the flake is called
# here as Nix would call it, with a mkCluster that also returns its argument.
#
#   resolved, dir, locks  the flake, as nix flake metadata describes it
#   cluster               name of the cluster; empty if the flake has only one
#   service               name of the service
{
  resolved,
  dir,
  locks,
  cluster,
  service,
}:
let
  inherit (builtins)
    attrNames
    concatMap
    elemAt
    fetchTree
    genList
    head
    isAttrs
    isBool
    isFloat
    isInt
    isList
    isPath
    isString
    length
    mapAttrs
    removeAttrs
    replaceStrings
    stringLength
    substring
    tail
    typeOf
    unsafeDiscardStringContext
    unsafeGetAttrPos
    ;

  follow =
    key: path: if path == [ ] then key else follow (named locks.nodes.${key}.inputs.${head path}) (tail path);
  named = spec: if isList spec then follow locks.root spec else spec;

  # An input with a mkCluster that returns its argument as `written`.
  tapped =
    input:
    if input ? lib.mkCluster then
      input
      // {
        lib = input.lib // {
          mkCluster = given: input.lib.mkCluster given // { written = given; };
        };
      }
    else
      input;

  nodes = mapAttrs (
    key: node:
    let
      locked = node.locked or { };
      relative = (locked.type or "") == "path" && substring 0 1 (locked.path or "/") != "/";
      parent = nodes.${follow locks.root (node.parent or [ ])};
      sourceInfo =
        if key == locks.root then
          fetchTree resolved
        else if relative then
          parent.sourceInfo // { outPath = parent.outPath + "/" + locked.path; }
        else
          fetchTree (removeAttrs locked [ "dir" ]);
      below = if key == locks.root then dir else locked.dir or "";
      outPath = sourceInfo.outPath + (if below == "" then "" else "/" + below);
      inputs = mapAttrs (_: spec: tapped nodes.${named spec}) (node.inputs or { });
      outputs = (import (outPath + "/flake.nix")).outputs (inputs // { self = flake; });
      flake =
        outputs
        // sourceInfo
        // {
          inherit
            inputs
            outPath
            outputs
            sourceInfo
            ;
          _type = "flake";
        };
    in
    if node.flake or true then flake else sourceInfo // { inherit sourceInfo outPath; }
  ) locks.nodes;

  root = nodes.${locks.root};
  source = unsafeDiscardStringContext (toString root.sourceInfo.outPath);
  clusters = root.florete or { };
  chosen = if cluster == "" then head (attrNames clusters) else cluster;
  written = removeAttrs clusters.${chosen}.written [
    "_faults"
    "rev"
    "self"
    "serial"
  ];

  # Text without the path of the flake in the store, which differs between copies of the flake.
  text = v: replaceStrings [ source ] [ "" ] (unsafeDiscardStringContext v);
  plain =
    v:
    if isString v then
      text v
    else if isPath v then
      { _path = text (toString v); }
    else if isList v then
      map plain v
    else if isAttrs v then
      mapAttrs (_: plain) v
    else if isInt v || isBool v || isFloat v || v == null then
      v
    else
      { _type = typeOf v; };

  # A position in the flake, null for others.
  at =
    pos:
    let
      n = stringLength source;
      file = unsafeDiscardStringContext (toString pos.file);
    in
    if pos == null || substring 0 (n + 1) file != "${source}/" then
      null
    else
      {
        file = substring (n + 1) (-1) file;
        inherit (pos) line column;
      };

  mentions = v: replaceStrings [ service ] [ "" ] v != v;
  isOf = path: length path >= 2 && head path == "services" && elemAt path 1 == service;

  # The positions of attributes: those of the service, and those that mention its name in their own
  # name or in a text. The position of a text in a list is that of the list's attribute.
  places =
    path: pos: v:
    (
      if path != [ ] && (isOf path || isString v && mentions v) then
        [
          {
            inherit path;
            at = at pos;
          }
        ]
      else
        [ ]
    )
    ++ (
      if isList v then
        concatMap (i: places (path ++ [ i ]) pos (elemAt v i)) (genList (i: i) (length v))
      else if isAttrs v then
        concatMap (
          n:
          let
            here = unsafeGetAttrPos n v;
            inner = places (path ++ [ n ]) here v.${n};
          in
          (
            if !isOf (path ++ [ n ]) && mentions n then
              [
                {
                  path = path ++ [ n ];
                  at = at here;
                }
              ]
            else
              [ ]
          )
          ++ inner
        ) (attrNames v)
      else
        [ ]
    );
in
if !clusters ? ${chosen} || !clusters.${chosen} ? written || !isAttrs clusters.${chosen}.written then
  null
else
  {
    topology = plain written;
    places = places [ ] null written;
  }
