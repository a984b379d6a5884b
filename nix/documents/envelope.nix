# A document: the exact bytes of a body, and of the envelope that names them.
# { cluster, serial, rev } -> kind -> hostName -> body -> { body, envelope :: String }
{
  cluster,
  serial,
  rev,
}:
let
  inherit (builtins) toJSON;
  inherit (import ../lib/names.nix) sri;
  formatOf = import ./format.nix;
in
kind: host: value:
let
  body = toJSON value;
in
{
  inherit body;
  envelope = toJSON {
    schema = "florete.envelope/v1";
    format = formatOf kind value;
    digest = sri body;
    inherit
      cluster
      host
      kind
      rev
      serial
      ;
  };
}
