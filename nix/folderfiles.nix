# What is in a folder of files: those that are read, with their values, and the folders.
# Path -> { place, regular, entries, folders, holding, lookalike }
root:
let
  inherit (builtins)
    addErrorContext
    any
    attrNames
    elemAt
    filter
    fromJSON
    head
    isAttrs
    map
    match
    readDir
    readFile
    removeAttrs
    stringLength
    substring
    toString
    ;

  # As people know it, who do not know the store.
  place = path: substring (stringLength (toString root) + 1) (-1) (toString path);

  regular =
    path:
    let
      all = readDir path;
    in
    filter (f: all.${f} != "directory") (attrNames all);
  files =
    path:
    filter (f: f.name != null) (
      map (file: {
        path = path + "/${file}";
        name = match "([^._].*)\\.(nix|json)" file;
      }) (regular path)
    );
  entries =
    path:
    map (f: {
      name = head f.name;
      form = elemAt f.name 1;
      base = baseNameOf f.path;
      file = place f.path;
      value = if elemAt f.name 1 == "nix" then import f.path else data f.path;
    }) (files path);
  # What is no set has no attributes to take out; mkCluster refuses it.
  data =
    path:
    let
      value = addErrorContext "while reading ${place path}" (fromJSON (readFile path));
    in
    if isAttrs value then removeAttrs value [ "$schema" ] else value;
  # Looks like part of the topology, and is not read.
  lookalike =
    f:
    match "[^._].*\\.((nix|json|ya?ml).+|Nix|NIX|JSON|ya?ml|YA?ML|jsn|toml|hujson|dhall|ncl|cue|csv|txt|bak|orig|old)|#.*\\.(nix|json)#" f
    != null
    && match "README.*" f == null;
  folders =
    path:
    filter (f: (readDir path).${f} == "directory" && match "[._].*" f == null) (
      attrNames (readDir path)
    );
  holding = path: files path != [ ] || any (f: holding (path + "/${f}")) (folders path);
in
{
  inherit
    entries
    folders
    holding
    lookalike
    place
    regular
    ;
}
