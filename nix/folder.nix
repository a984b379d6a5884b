# A topology as a folder of files, so that a change of the cluster reads like a change
# request: path → arguments for mkCluster.
#
#   cluster.nix           name, trustDomain, trust and whatever has no file of its own
#   services.nix          the attribute `services`; so with every other name
#   services/wiki.nix     the service `wiki`; so with hosts, users, roles, groups,
#                         providers and inventory
#   hosts/eu/fra/web.nix  the host `web` in the group "eu/fra" of the inventory, which is
#                         there because the folder is
#
# What starts with a dot or an underscore is left alone; at the top flake.nix, default.nix
# and folders called otherwise too. A folder called almost like one of these is taken
# for the attribute of its name, which mkCluster then refuses.
root:
let
  inherit (builtins)
    any
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
    removeAttrs
    stringLength
    substring
    ;
  inherit (import ./text.nix) within;
  kinds = [ "hosts" ] ++ flatly;
  flatly = attrNames (removeAttrs (import ./shape.nix).entries [ "hosts" ]) ++ [ "inventory" "providers" ];

  # As people know it, who do not know the store.
  place = path: substring (stringLength (toString root) + 1) (-1) (toString path);

  files = path: filter (f: f.name != null) (map
    (file: { path = path + "/${file}"; name = match "([^._].*)\\.nix" file; })
    (filter (f: (readDir path).${f} != "directory") (attrNames (readDir path))));
  entries = path: map (f: { name = head f.name; value = import f.path; }) (files path);
  folders = path: filter (f: (readDir path).${f} == "directory" && match "[._].*" f == null) (attrNames (readDir path));
  holding = path: files path != [ ] || any (f: holding (path + "/${f}")) (folders path);

  # Below the top a file has the name of what it describes.
  things = path:
    if !pathExists (path + "/default.nix") then entries path
    else throw "${place path}/default.nix: a file has the name of what is in it: call it ${place path}.nix";
  # Hosts alone are in groups: what lies deeper elsewhere would have no effect.
  flat = path:
    if folders path == [ ] then things path
    else throw "${place path}/${head (folders path)}: only hosts are in folders of folders: put its files into ${place path}";

  inside = group: name: if group == "" then name else "${group}/${name}";
  # Every group below a path, itself not.
  groups = group: path: concatMap
    (name: [ (inside group name) ] ++ groups (inside group name) (path + "/${name}"))
    (folders path);
  hosts = group: path:
    map
      (host: if group == "" || !isAttrs host.value then host else host // { value = { inherit group; } // host.value; })
      (things path)
    ++ concatMap (name: hosts (inside group name) (path + "/${name}")) (folders path);

  pairs = set: map (name: { inherit name; value = set.${name}; }) (attrNames set);
  # One name in two places would hide one of them.
  set = place: foldl'
    (all: p:
      if all ? ${p.name} then throw "${place}: there are two of the name ${p.name}: keep one of them"
      else all // { ${p.name} = p.value; })
    { };

  top = removeAttrs (listToAttrs (entries root)) [ "default" "flake" ];
  cluster = top.cluster or { };
  # What no folder adds to.
  written =
    if isAttrs cluster then set "cluster.nix" (pairs cluster ++ pairs (removeAttrs top [ "cluster" ]))
    else throw "cluster.nix: want a set: write { name = …; }";

  meant = name: elem name kinds || any (within 1 name) kinds && holding (root + "/${name}");
  # With what is no set there is nothing to add to; mkCluster refuses it.
  below = name:
    let
      dir = root + "/${name}";
      already = written.${name} or { };
    in
    {
      inherit name;
      value =
        if !isAttrs already then already
        else set name (pairs already ++ (if elem name flatly then flat else hosts "") dir);
    };
  all = written // listToAttrs (map below (filter meant (folders root)));

  found = if pathExists (root + "/hosts") then groups "" (root + "/hosts") else [ ];
  known = all.inventory or { };
in
if found == [ ] || !isAttrs known then all
else all // { inventory = listToAttrs (map (name: { inherit name; value = { }; }) found) // known; }
