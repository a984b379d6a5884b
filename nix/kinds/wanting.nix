# Services that want something of a kind, or that a check of one is about. Most are not, which one
# comparison shows: asking each kind of each service was a twelfth of all calls.
# wanting :: { name = Service; } -> { name = Service; }
let
  inherit (builtins)
    attrValues
    filter
    foldl'
    intersectAttrs
    listToAttrs
    ;
  own = foldl' (all: k: all // k.service or { }) (import ./own.nix).service (attrValues (import ./.));
  # What kinds look at besides: tls.nix.
  others = {
    tlsAliases = null;
    visibility = null;
  };
  unwritten = intersectAttrs (own // others) (import ../language/service.nix).zero;
in
services:
listToAttrs (
  map (value: {
    inherit (value) name;
    inherit value;
  }) (filter (s: intersectAttrs unwritten s != unwritten) (attrValues services))
)
