# Public names by service ID, as entries of `reach` on hosts with an ingress have them.
# Topology -> { id = Host -> { tlsName, … } | { }; }
t:
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    listToAttrs
    ;
  inherit (import ../lib) only optionalAttrs;
  gate = import ../resolve/gate.nix;
  publicNames = import ../resolve/publicnames.nix;
  redirected = publicNames.redirects t;
in
listToAttrs (
  concatMap (
    s:
    map (name: {
      inherit name;
      value =
        let
          rules = publicNames.rules s;
          names = {
            inherit (s) tlsName;
          }
          // optionalAttrs (s.tlsAliases != [ ]) { inherit (s) tlsAliases; }
          // optionalAttrs s.grpc { grpc = true; }
          // optionalAttrs (rules != { }) { ingress = rules; }
          // gate.attribute t s
          // optionalAttrs (redirected ? ${s.name}) {
            redirects = only redirected.${s.name} t.redirects;
          };
        in
        host: if publicNames.serves host s then names else { };
    }) (if s.shared == null then map (i: i.name) s.instances else [ s.shared ])
  ) (filter (s: s.tlsName != "") (attrValues t.services))
  ++ map (
    s:
    let
      rules = publicNames.rules s;
      names = {
        inherit (s) tlsName;
      }
      // optionalAttrs (rules != { }) { ingress = rules; };
    in
    {
      inherit (s) name;
      value = host: if publicNames.serves host s then names else { };
    }
  ) (publicNames.abroad t)
)
