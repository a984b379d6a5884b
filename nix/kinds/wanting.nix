# Services with an attribute of some kind of need. Most services have none, which one comparison
# shows. Without it, asking each kind about each service took a twelfth of all function calls.
# wanting :: { name = Service; } -> { name = Service; }
let
  inherit (builtins)
    attrValues
    filter
    foldl'
    intersectAttrs
    ;
  inherit (import ../lib) named;
  own = foldl' (all: k: all // k.service or { }) (import ./own.nix).service (attrValues (import ./.));
  # Further attributes that a kind reads: tls.nix.
  others = {
    tlsAliases = null;
    visibility = null;
  };
  unwritten = intersectAttrs (own // others) (import ../language/service.nix).zero;
in
services:
named (filter (s: intersectAttrs unwritten s != unwritten) (attrValues services))
