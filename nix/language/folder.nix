# Reads a topology from a folder in which each part of the topology has its own file. A change of a
# part is then a change of its file. The result is the argument of mkCluster.
#
#   cluster.nix           name, trustDomain, trust and all attributes without a file of their own
#   services.nix          the attribute `services`; likewise for other names
#   services/wiki.nix     the service `wiki`; likewise for hosts, users, roles, secrets,
#                         serviceGroups, providers and hostGroups
#   hosts/eu/fra/web.nix  the host `web` in the host group "eu/fra", which exists because the
#                         folder exists
#
# A file can also be in JSON, with the extension .json. The key "$schema", which editors use, is
# ignored.
#
# Files and folders whose names start with a dot or an underscore are ignored. In the top folder,
# flake.nix, default.nix, and unrelated folders and JSON files are ignored too. If the name of a
# file is almost that of an attribute, mkCluster reports it as a misspelled attribute. A file in any
# other format is an error.
#
# The attribute `_faults` of the result contains the errors in the files. mkCluster reports them
# together with all other errors.
# folder :: Path -> AttrSet
root:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    groupBy
    head
    isAttrs
    length
    listToAttrs
    match
    pathExists
    ;
  inherit (import ../lib) genAttrs;
  inherit (import ../lib/fault.nix) fault;
  inherit (import ../lib/text.nix) within;
  language = import ./.;
  kinds = [ "hosts" ] ++ flatly;
  flatly = attrNames (removeAttrs language.entries [ "hosts" ]) ++ [
    "hostGroups"
    "providers"
  ];
  # Other programs keep files in the same folder. Reports whether a name belongs to the topology.
  means =
    name:
    language.cluster.about.fields ? ${name}
    || any (within 1 name) (
      kinds
      ++ [
        "acknowledge"
        "cluster"
        "expect"
        "rollout"
        "trust"
      ]
    );

  inherit (import ./folderfiles.nix root)
    alien
    entries
    folders
    holding
    lookalike
    place
    regular
    ;

  wrong =
    id: place: problem: value: remedy:
    fault {
      inherit
        id
        place
        problem
        value
        remedy
        ;
    };

  # Below the top, the name of a file is the name of its entry.
  things = path: filter (e: e.name != "default" && alien e == null) (entries path);
  # Faults of files that are probably meant for the topology, but are not read.
  ignored =
    path:
    map (
      e:
      wrong "FL001" (place path) "a file has the name of what is in it, not" e.base
        "call it ${place path}.${e.form}"
    ) (filter (e: e.name == "default") (entries path))
    ++ map (
      e:
      wrong "FL002" (place path) "want a set, found ${alien e} in" e.base
        "call it _${e.base}, or give the topology a folder of its own: florete.lib.folder ./cluster"
    ) (filter (e: alien e != null) (entries path))
    ++ map (unread (place path)) (filter lookalike (regular path));
  unread =
    place: f:
    wrong "FL001" place "a file that is not read:" f
      "write it in Nix or as .json, or call it _${f} if it is no part of the cluster";
  deeper =
    path:
    map (
      f:
      wrong "FL001" (place path) "only hosts are in folders of folders, not" f
        "put its files into ${place path}"
    ) (folders path);
  within' =
    name: path:
    ignored path
    ++ (
      if elem name flatly then
        deeper path
      else
        concatMap (f: within' name (path + "/${f}")) (folders path)
    );

  inside = group: name: if group == "" then name else "${group}/${name}";
  # The groups below a path, without itself.
  groups =
    group: path:
    concatMap (name: [ (inside group name) ] ++ groups (inside group name) (path + "/${name}")) (
      folders path
    );
  hosts =
    group: path:
    map (
      host:
      if group == "" || !isAttrs host.value then
        host
      else
        host
        // {
          value = {
            inherit group;
          }
          // host.value;
        }
    ) (things path)
    ++ concatMap (name: hosts (inside group name) (path + "/${name}")) (folders path);

  pairs =
    file: set:
    map (name: {
      inherit file name;
      value = set.${name};
    }) (attrNames set);
  # Names must be unique; duplicates are reported.
  set = all: listToAttrs all;
  twice =
    prefix: all:
    concatMap (
      same:
      if length same == 1 then
        [ ]
      else
        [
          (wrong "FL009" "${prefix}${(head same).name}" "written in several files:" (concatStringsSep ", " (
            map (e: e.file) same
          )) "keep one of them")
        ]
    ) (attrValues (groupBy (e: e.name) all));

  files' = filter (e: means e.name) (entries root);
  # Nix files of other tools, such as shell.nix.
  foreign =
    e:
    e.form == "nix"
    && !means e.name
    && !elem e.name [
      "default"
      "flake"
    ];
  stem = f: head (match "#?([^.]*).*" f);
  clusters = filter (e: e.name == "cluster") files';
  cluster = (listToAttrs files').cluster or { };
  clusterFile = if clusters == [ ] then "cluster.nix" else (head clusters).file;
  # The attributes in files at the top.
  parts =
    (if isAttrs cluster then pairs clusterFile cluster else [ ])
    ++ filter (e: e.name != "cluster") files';
  written = set parts;

  meant = name: elem name kinds || any (within 1 name) kinds && holding (root + "/${name}");
  # Nothing can be added to an attribute that is no set, which mkCluster refuses.
  below =
    name:
    let
      dir = root + "/${name}";
      already = written.${name} or { };
      one =
        (listToAttrs (
          map (e: {
            inherit (e) name;
            value = e.file;
          }) parts
        )).${name} or clusterFile;
      all = pairs one already ++ (if elem name flatly then things dir else hosts "" dir);
    in
    {
      inherit name;
      value = if isAttrs already then set all else already;
      faults = within' name dir ++ (if isAttrs already then twice "${name}." all else [ ]);
    };
  added = map below (filter meant (folders root));
  all = written // listToAttrs added // (if faults == [ ] then { } else { _faults = faults; });
  faults =
    (
      if isAttrs cluster then
        [ ]
      else
        [ (wrong "FL002" clusterFile "want a set, found" "something else" "write { name = …; }") ]
    )
    ++ map (unread "mkCluster") (filter (f: lookalike f && means (stem f)) (regular root))
    ++ map (
      e:
      wrong "FL001" "mkCluster" "a file that is no part of a cluster:" e.file
        "call it _${e.base}, or give the topology a folder of its own: florete.lib.folder ./cluster"
    ) (filter foreign (entries root))
    ++ twice "" clusters
    ++ twice "" parts
    ++ concatMap (b: b.faults) added;

  found = if pathExists (root + "/hosts") then groups "" (root + "/hosts") else [ ];
  known = all.hostGroups or { };
in
if found == [ ] || !isAttrs known then
  all
else
  all
  // {
    hostGroups = genAttrs found (_: { }) // known;
  }
