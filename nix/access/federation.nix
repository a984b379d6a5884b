# Hosts that accept identities of other clusters, in foreign trust domains or in this one. Few hosts
# do, so only services are considered that roles of such identities lead to.
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    mapAttrs
    ;
  inherit (import ../lib) invert sorted;

  # service → the names of some other clusters with an identity that reaches it
  # callingOf :: Topology -> { name = { identities, … }; } -> { service = [name]; }
  callingOf =
    t: others:
    let
      members =
        r: t.roles.${r}.services ++ concatMap (g: t.serviceGroups.${g} or [ ]) t.roles.${r}.serviceGroups;
    in
    invert (f: filter (s: t.services.${s}.published or false) (concatMap members f.roles)) (
      attrValues (
        mapAttrs (name: f: {
          inherit name;
          roles = sorted (concatMap (i: i.roles) f.identities);
        }) others
      )
    );

  # The names of some other clusters whose identities reach a service of a host, or whose services
  # an identity of the host reaches.
  # among :: Topology -> { name = { identities, services, … }; } -> Host -> [name]
  among =
    t: others:
    let
      by = callingOf t others;
      called = invert (f: concatMap (s: s.roles) f.services) (
        attrValues (mapAttrs (name: f: { inherit name; inherit (f) services; }) others)
      );
    in
    if others == { } then
      _: [ ]
    else
      host:
      sorted (
        concatMap (s: by.${s} or [ ]) host.services
        ++ concatMap (r: called.${r} or [ ]) (
          host.roles
          ++ concatMap (u: t.users.${u}.roles) host.users
          ++ concatMap (s: s.roles) host.running
        )
      );
in
{
  # service → the names of the foreign trust domains with an identity that reaches it
  # calling :: Topology -> { service = [name]; }
  calling = t: callingOf t t.federated;

  # The foreign trust domains and the other clusters of this one whose identities reach a service of
  # a host, or whose services the host reaches.
  # on, clusters :: Topology -> Host -> [name]
  on = t: among t t.federated;
  clusters = t: among t t.clusters;

  # The ID of the need that delivers the bundle of a foreign trust domain.
  # need :: name -> String
  need = name: "federation-${name}";
}
