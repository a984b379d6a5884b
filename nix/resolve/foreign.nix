# Resolves the services and identities of foreign trust domains, and of other clusters in the trust
# domain of this cluster.
let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    elem
    filter
    foldl'
    listToAttrs
    mapAttrs
    ;
  inherit (import ../language/formats) isIdentity;
  inherit (import ../lib) optionalAttrs sorted;
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

  process = trustDomain: kind: host: addresses: {
    id = names.id trustDomain "service/${host}/${names.provider kind}";
    inherit addresses;
  };

  followed =
    trustDomain: rolesOf: f:
    f
    // {
      identities = map (path: {
        name = names.id trustDomain path;
        roles = rolesOf f.identities.${path};
      }) (filter (path: trustDomain != "" && isIdentity path) (attrNames f.identities));
      services = map (path: {
        inherit (f.services.${path}) ingress tlsName;
        roles = rolesOf f.services.${path};
        instance = instance (names.id trustDomain "service/${path}") f.services.${path};
      }) (filter (path: trustDomain != "" && isIdentity "service/${path}") (attrNames f.services));
    };
in
{
  # Services of other clusters in roles and groups: "tickets@blue" is the service tickets of
  # federated.blue or clusters.blue. The names are moved from the roles to the services that they
  # name, so code that follows parts of services does not see them. `elsewhere` contains all of
  # them.
  # named :: clean topology -> clean topology
  named =
    clean:
    let
      of =
        all:
        concatMap (
          cluster:
          map (service: {
            name = "${service}@${cluster}";
            value = { inherit cluster service; };
          }) (attrNames all.${cluster}.services)
        ) (attrNames all);
      elsewhere = listToAttrs (of clean.clusters ++ of clean.federated);
      isHere = n: !elsewhere ? ${n};

      named = role: role.services ++ concatMap (g: clean.serviceGroups.${g} or [ ]) role.serviceGroups;
      leading = mapAttrs (_: role: filter (n: elsewhere ? ${n}) (named role)) clean.roles;
      led = mapAttrs (
        cluster: f:
        f
        // {
          services = mapAttrs (
            service: s:
            s
            // {
              roles = sorted (
                s.roles ++ filter (r: elem "${service}@${cluster}" leading.${r}) (attrNames clean.roles)
              );
            }
          ) f.services;
        }
      );
      used =
        any (r: !(all isHere r.services)) (attrValues clean.roles)
        || !(all isHere (concatLists (attrValues clean.serviceGroups)));
    in
    if elsewhere == { } || !used then
      clean // { inherit elsewhere; }
    else
      clean
      // {
        inherit elsewhere;
        roles = mapAttrs (_: r: r // { services = filter isHere r.services; }) clean.roles;
        serviceGroups = mapAttrs (_: filter isHere) clean.serviceGroups;
        clusters = led clean.clusters;
        federated = led clean.federated;
      };

  # The providers of other clusters at which hosts here have needs, by kind and host.
  # providers :: clean topology -> { kind = { hostName = { id; addresses }; }; }
  providers = clean: {
    oidc = foldl' (all: c: mapAttrs (process clean.trustDomain "oidc") c.oidc.hosts // all) { } (
      attrValues clean.clusters
    );
  };

  # The instances of foreign trust domains, of other clusters of this one, and of both: named
  # identities as { name = <SPIFFE ID>; roles }, and services as { roles; instance }. An instance
  # has the form of one of this cluster, and is on no host.
  # instances :: { clean, rolesOf } -> { federated, clusters, abroad }
  instances =
    { clean, rolesOf }:
    rec {
      federated = mapAttrs (_: f: followed f.trustDomain rolesOf f) clean.federated;
      clusters = mapAttrs (_: followed clean.trustDomain rolesOf) clean.clusters;
      abroad = attrValues federated ++ attrValues clusters;
    };
}
