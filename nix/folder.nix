# A topology as a folder of files, so that a change of the cluster reads like a change
# request: path → arguments for mkCluster.
#
#   cluster.nix           name, trustDomain, trust and whatever has no file of its own
#   services.nix          the attribute `services`; so with every other name
#   services/wiki.nix     the service `wiki`; so with hosts, users, roles and groups
#   hosts/eu/fra/web.nix  the host `web` in the group "eu/fra" of the inventory, which is
#                         there because the folder is
#
# Files that start with a dot or an underscore, flake.nix and default.nix are left alone.
let
  inherit (builtins)
    attrNames
    concatMap
    elem
    filter
    foldl'
    head
    isAttrs
    listToAttrs
    map
    match
    pathExists
    readDir
    ;

  named = path: filter (f: f.name != null) (map
    (file: { inherit file; path = path + "/${file}"; name = match "([^._].*)\\.nix" file; })
    (filter (f: (readDir path).${f} != "directory") (attrNames (readDir path))));
  files = path: map (f: f // { name = head f.name; }) (filter (f: !elem f.file [ "flake.nix" "default.nix" ]) (named path));
  folders = path: filter (f: (readDir path).${f} == "directory" && match "[._].*" f == null) (attrNames (readDir path));

  within = group: name: if group == "" then name else "${group}/${name}";
  # Every group below a path, itself not.
  groups = group: path: concatMap
    (name: [ (within group name) ] ++ groups (within group name) (path + "/${name}"))
    (folders path);

  hosts = group: path:
    map
      (f:
        let host = import f.path; in
        { inherit (f) name; value = if group == "" || !isAttrs host then host else { inherit group; } // host; })
      (files path)
    ++ concatMap (name: hosts (within group name) (path + "/${name}")) (folders path);

  entries = path: map (f: { inherit (f) name; value = import f.path; }) (files path);
  # Hosts alone are in groups: what lies deeper elsewhere would have no effect.
  flat = path:
    if folders path == [ ] then entries path
    else throw "${toString path}/${head (folders path)}: only hosts are in folders of folders: put its files into ${toString path}";

  # One name in two places would hide one of them.
  set = path: pairs: foldl'
    (all: p:
      if all ? ${p.name} then throw "${toString path}: there are two files for ${p.name}: keep one of them"
      else all // { ${p.name} = p.value; })
    { }
    pairs;
in
path:
let
  top = listToAttrs (entries path);
  base = top.cluster or { };
  below = kind: read:
    let dir = path + "/${kind}"; in
    if !pathExists dir then { }
    else {
      ${kind} = set dir (
        (if isAttrs (top.${kind} or { }) then map (name: { inherit name; value = top.${kind}.${name}; }) (attrNames (top.${kind} or { })) else [ ])
        ++ read dir);
    };
  inventory = if pathExists (path + "/hosts") then groups "" (path + "/hosts") else [ ];
  written = base // removeAttrs top [ "cluster" ];
in
written
// below "hosts" (hosts "")
// foldl' (all: kind: all // below kind flat) { } [ "services" "users" "roles" "groups" ]
// (if inventory == [ ] then { } else {
  inventory = listToAttrs (map (name: { inherit name; value = { }; }) inventory) // written.inventory or { };
})
