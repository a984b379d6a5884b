# The documents of a host as a directory in the store, unpacked from a tar file by Nix's own channel
# unpacker. As a string the result is /nix/store/…-florete-ursula/documents.
#
# The archive is a string, made without a shell or nixpkgs. Nix strings cannot contain NUL. The v7
# format works without: names fill their field, other fields are padded with spaces, and the archive
# has no end marker.
# hostName -> documents -> Derivation
let
  inherit (builtins)
    attrNames
    concatStringsSep
    foldl'
    genList
    listToAttrs
    stringLength
    substring
    toFile
    ;

  times = n: s: concatStringsSep "" (genList (_: s) n);
  octal = width: n: if width == 0 then "" else octal (width - 1) (n / 8) + toString (n - n / 8 * 8);

  range =
    first: chars:
    genList (i: {
      name = substring i 1 chars;
      value = first + i;
    }) (stringLength chars);
  code = listToAttrs (
    range 32 " " ++ range 46 "./0123456789" ++ range 97 "abcdefghijklmnopqrstuvwxyz"
  );
  sum = s: foldl' (n: i: n + code.${substring i 1 s}) 0 (genList (i: i) (stringLength s));

  # "a" and ".//./a" name the same file.
  fill =
    width: name:
    let
      free = width - stringLength name;
    in
    (if free - free / 2 * 2 == 1 then ".//" + times (free / 2 - 1) "./" else times (free / 2) "./")
    + name;

  # One file of the archive, which is a concatenation of files. Names consist of lower-case letters,
  # digits, "." and "/".
  #   tar "a/b.json" "{}" → 512 bytes ".//././…/a/b.json0000444 0000000 …", then "{}" and 510 spaces
  # tar :: String -> String -> String
  tar =
    name: text:
    let
      size = stringLength text;
      start = fill 100 name + "0000444 0000000 0000000 " + octal 11 size + " " + octal 11 1 + " ";
      end = "0" + times 355 " ";
    in
    start
    + octal 7 (sum (start + times 8 " " + end))
    + " "
    + end
    + text
    + times ((size + 511) / 512 * 512 - size) " ";

  file = name: tar "documents/${name}";
in
host: documents:
let
  files =
    kind:
    file "${kind}.json" documents.${kind}.body
    + file "${kind}.envelope.json" documents.${kind}.envelope;

  store = derivation {
    name = "florete-${host}";
    system = "builtin";
    builder = "builtin:unpack-channel";
    channelName = "documents";
    src = toFile "documents.tar" (concatStringsSep "" (map files (attrNames documents)));
  };
in
store // { outPath = "${store}/documents"; }
