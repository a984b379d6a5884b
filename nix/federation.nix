# Where identities of foreign trust domains are accepted. Few hosts do, so this is computed for
# the services that roles of such identities lead to, and for no others.
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    map
    ;
  inherit (import ./lib.nix) sorted;
  invert = import ./invert.nix;

  # service → the names of the foreign trust domains that have an identity which reaches it
  # calling :: Topology -> { service = [name]; }
  calling =
    t:
    let
      members =
        r: t.roles.${r}.services ++ concatMap (g: t.serviceGroups.${g} or [ ]) t.roles.${r}.serviceGroups;
    in
    invert (f: filter (s: t.services.${s}.published or false) (concatMap members f.roles)) (
      map (f: {
        inherit (f) name;
        roles = sorted (concatMap (i: i.roles) f.identities);
      }) (attrValues t.federated)
    );
in
{
  inherit calling;

  # The foreign trust domains whose identities reach a service of a host, or whose services
  # somebody there reaches.
  # on :: Topology -> Host -> [name]
  on =
    t:
    let
      by = calling t;
      called = invert (f: concatMap (s: s.roles) f.services) (attrValues t.federated);
    in
    if t.federated == { } then
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

  # The need that delivers the bundle of one.
  # need :: name -> String
  need = name: "federation-${name}";
}
