# Finds the files of a topology in a folder. The result contains the files that are read, with their
# values, and the folders.
# Path -> { place, regular, entries, alien, folders, holding, lookalike }
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
    isFunction
    match
    pathExists
    readDir
    readFile
    stringLength
    substring
    toString
    tryEval
    ;

  inherit (import ../lib/text.nix) toLower within;

  # The path relative to the flake, because people do not know the store path.
  place = path: substring (stringLength (toString root) + 1) (-1) (toString path);

  # A symbolic link to a folder counts as a folder. Nix cannot follow links out of the flake.
  isFolder =
    path: f: type:
    type == "directory" || type == "symlink" && pathExists "${toString path}/${f}/.";
  regular =
    path:
    let
      all = readDir path;
    in
    filter (f: !isFolder path f all.${f}) (attrNames all);
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
  # mkCluster refuses a value that is no set.
  data =
    path:
    let
      value = addErrorContext "while reading ${place path}" (fromJSON (readFile path));
    in
    if isAttrs value then removeAttrs value [ "$schema" ] else value;
  # A description of an entry that belongs to another tool; null for other entries.
  alien =
    { value, ... }:
    let
      holds = condition: (tryEval condition).value;
      isRule = name: match ".*[.]age" name != null;
    in
    if holds (isFunction value) then
      "a function, as modules of NixOS are,"
    else if holds (isAttrs value && any isRule (attrNames value)) then
      "rules of agenix"
    else
      null;
  # Reports whether a file looks like part of the topology without being read: it has no ending, a
  # misspelled one, a further ending, or that of another data language.
  lookalike =
    f:
    let
      end = match "[^._].*\\.([^.]*)" f;
      ending = toLower (head end);
      misspelt = within 1 "nix" ending || within 1 "json" ending;
    in
    match "#.*\\.(nix|json)#" f != null
    || match "[^._]*[a-z][^.]*" f != null
    ||
      end != null
      && match "README.*" f == null
      && match ".*\\.(nix|json)" f == null
      && (
        misspelt
        || match ".*\\.((nix|json|ya?ml).+|ya?ml|toml|hujson|dhall|ncl|cue|csv|txt|bak|orig|old)" (toLower f) != null
      );
  folders =
    path:
    let
      all = readDir path;
    in
    filter (f: isFolder path f all.${f} && match "[._].*" f == null) (attrNames all);
  holding = path: files path != [ ] || any (f: holding (path + "/${f}")) (folders path);
in
{
  inherit
    alien
    entries
    folders
    holding
    lookalike
    place
    regular
    ;
}
