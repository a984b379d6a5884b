# The document set of a host as a directory in the store: Nix's own channel unpacker is given
# a tar file. As a string the result is /nix/store/…-florete-ursula/documents.
# hostName -> documents -> Derivation
host: documents:
let
  inherit (builtins)
    attrNames
    concatStringsSep
    derivation
    toFile
    ;
  tar = import ./tar.nix;

  file = name: tar.file "documents/${name}";
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
