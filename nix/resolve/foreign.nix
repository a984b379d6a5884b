# Foreign trust domains, other clusters of this one, and all of these: their named identities, as
# { name = <SPIFFE ID>; roles }, and their services, as { roles; instance }. Each instance is like
# one of this cluster's, on no host.
# { clean; rolesOf; } -> { federated; clusters; abroad; }
{ clean, rolesOf }:
let
  inherit (builtins)
    attrNames
    attrValues
    filter
    map
    mapAttrs
    ;
  inherit (import ../language/formats) isIdentity;
  inherit (import ../lib) optionalAttrs;
  names = import ../lib/names.nix;

  instance =
    id: service:
    let
      hash = names.hash id;
      listenerKey = names.listenerKey (names.range names.loopback) hash service.port;
    in
    {
      name = id;
      value = {
        inherit hash listenerKey;
        inherit (service) port;
        key = id;
        on = [ ];
        service = id;
        networked = false;
        transports = [ ];
        excluded = false;
        entry = {
          inherit id;
          endpoints = map (at: [ at ]) service.address;
          listen = names.listen listenerKey;
        }
        // optionalAttrs (service.protocol == "udp") { inherit (service) protocol; };
      };
    };

  elsewhere =
    f:
    f
    // {
      identities = map (path: {
        name = names.id f.trustDomain path;
        roles = rolesOf f.identities.${path};
      }) (filter (path: f.trustDomain != "" && isIdentity path) (attrNames f.identities));
      services = map (path: {
        roles = rolesOf f.services.${path};
        instance = instance (names.id f.trustDomain "service/${path}") f.services.${path};
      }) (filter (path: f.trustDomain != "" && isIdentity "service/${path}") (attrNames f.services));
    };
in
rec {
  federated = mapAttrs (_: elsewhere) clean.federated;
  clusters = mapAttrs (_: c: elsewhere (c // { inherit (clean) trustDomain; })) clean.clusters;
  abroad = attrValues federated ++ attrValues clusters;
}
