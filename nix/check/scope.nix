# Which faults block a host: those about the host, a service it runs or reaches, its
# providers, or a role or group that grants such access. A service with nowhere to run
# blocks every host: it may be meant for this one.
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
    mapAttrs
    ;
  inherit (import ../lib) toSet;
  # attribute of a kind → host → those that concern it
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
  users = toSet (host.users ++ clean.hosts.${name}.users ++ limits.users host);
  held =
    host.roles
    ++ concatMap (u: t.users.${u}.roles) host.users
    ++ concatMap (s: s.roles) host.running;
  leading = attrNames (toSet (held ++ concatMap (s: access.leading.${s} or [ ]) own));
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
  }
  // mapAttrs (_: on: toSet (on.${name} or [ ])) ofKinds;
in
{
  # Entries whose faults of meaning block the host, and those whose faults of shape do: of
  # hosts that it calls only what is written counts.
  # checks, shapes :: { <part of the language> = { name = null; }; }
  inherit checks;
  shapes = checks // {
    hosts = checks.hosts // toSet (concatMap (i: i.on) called);
  };
}
