# The faults that block a host: those of the host, the services it runs or reaches, its providers,
# and the roles and groups that grant such access. A service that fits no host blocks every host,
# because it may be meant for this one.
# { clean, topology, access } -> hostName -> { checks, shapes }
{
  clean,
  topology,
  access,
}:
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    mapAttrs
    ;
  inherit (import ../lib) toSet;
  # attribute of a kind → host → the entries that concern the host
  ofKinds = mapAttrs (_: e: e.on topology) (import ../language).ofKinds;
  limits = (import ../access/limits.nix).of { inherit topology access; };
  federation = import ../access/federation.nix;
  t = topology;
in
name:
let
  host = t.hosts.${name};
  called = attrValues access.reachableOn.${name};
  providers = concatMap (p: p.hosts) (attrValues t.providers);
  own = host.services ++ t.unplaced;

  services = toSet (own ++ map (i: i.service) called);
  users = toSet (
    host.users
    ++ clean.hosts.${name}.users
    ++ limits.users host
    ++ concatMap (r: t.requests.${r}.by ++ t.requests.${r}.approve) (filter (r: t.requests ? ${r}) leading)
  );
  held =
    host.roles
    ++ concatMap (u: t.users.${u}.roles ++ access.latent.rolesOf u) host.users
    ++ concatMap (s: s.roles) host.running;
  permitting =
    if access.logins.at == { } then
      [ ]
    else
      concatMap (s: concatMap (id: map (l: l.role) (access.logins.at.${id} or [ ])) (s.idsOn name)) host.running;
  leading = attrNames (
    toSet (held ++ permitting ++ concatMap (s: access.leading.${s} or [ ]) own)
  );
  roles = toSet (leading ++ concatMap (r: t.roles.${r}.roles) leading);
  teams = toSet (concatMap (u: t.users.${u}.teams) host.users);
  serviceGroups = toSet (concatMap (r: t.roles.${r}.serviceGroups) (attrNames roles));

  checks = {
    federated = toSet (federation.on t host);
    clusters = toSet (federation.clusters t host);
    inherit
      roles
      serviceGroups
      services
      teams
      users
      ;
    hosts = toSet ([ name ] ++ providers);
    outside = toSet (map (o: o.name) (filter (o: o.via == name) (attrValues t.outside)));
  }
  // mapAttrs (_: on: toSet (on.${name} or [ ])) ofKinds;
in
{
  # The entries whose faults block the host: by meaning, and by shape. Of hosts that it calls only
  # faults of shape count.
  # checks, shapes :: { <part of the language> = { name = null; }; }
  inherit checks;
  shapes = checks // {
    hosts =
      checks.hosts
      // toSet (concatMap (i: i.on) called ++ (if t.relaying then access.relayed.called host else [ ]));
  };
}
