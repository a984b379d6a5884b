# Where identities of other clusters are accepted: of foreign trust domains, and of this one. Few
# hosts do, so this is computed for the services that roles of such identities lead to, and for
# no others.
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    mapAttrs
    ;
  inherit (import ../lib) invert sorted;

  # service → the names of those of some other clusters that have an identity which reaches it
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

  # Those of some other clusters whose identities reach a service of a host, or whose services
  # somebody there reaches.
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
  # service → the names of the foreign trust domains that have an identity which reaches it
  # calling :: Topology -> { service = [name]; }
  calling = t: callingOf t t.federated;

  # The foreign trust domains, and the other clusters of this one, that a host has to do with.
  # on, clusters :: Topology -> Host -> [name]
  on = t: among t t.federated;
  clusters = t: among t t.clusters;

  # The need that delivers the bundle of one.
  # need :: name -> String
  need = name: "federation-${name}";
}
