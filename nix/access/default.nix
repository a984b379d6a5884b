# The access matrix, followed from principals through roles and groups to services. A principal is a
# node, a service or a user; it reaches the services of its roles and of their groups, and no
# others.
#
# Values for the whole cluster are computed once and lazily. The computation for a host grows only
# with the host's manifest. Nix sorts the names of a set, so sets with IDs as names need no sorting.
t:
let
  inherit (builtins)
    attrNames
    attrValues
    catAttrs
    concatMap
    filter
    foldl'
    groupBy
    head
    intersectAttrs
    length
    lessThan
    mapAttrs
    sort
    tail
    toJSON
    ;
  inherit (import ../lib) invert toSet;
  names = import ../lib/names.nix;
  transport = import ../resolve/transport.nix;

  union = sets: if sets == [ ] then { } else foldl' (a: b: a // b) (head sets) (tail sets);

  reach = import ./reach.nix t;
  inherit (reach) members;
  reachByRole = reach.byRole;

  services = mapAttrs (
    _: members:
    map (s: s.name) (filter (s: s.published) (attrValues (intersectAttrs (toSet members) t.services)))
  ) members;

  # role → the sorted IDs that hold it. A user on no host has no SVID, and is left out.
  holders = mapAttrs (
    _: by:
    attrNames (
      toSet (
        map (h: t.hosts.${h}.id) by.hosts
        ++ map (u: u.id) (filter (u: u.hosts != [ ]) (map (u: t.users.${u}) by.users))
        ++ concatMap (s: map (i: i.name) t.services.${s}.instances) by.services
        ++ by.foreign
      )
    )
  ) t.holders;

  ending = import ./ending.nix t;

  leading =
    let
      roles = intersectAttrs t.services (invert (role: members.${role.name}) (attrValues t.roles));
    in
    roles // mapAttrs (_: _: [ ]) (intersectAttrs (toSet t.hidden) roles);

  # The sorted IDs that hold one of some roles. Many services are reached by the same roles, so the
  # result for several roles is shared.
  holding =
    roles:
    if roles == [ ] then
      [ ]
    else if tail roles == [ ] then
      holders.${head roles}
    else
      several.${toJSON roles}.ids;
  anyOf = roles: attrNames (toSet (concatMap (role: holders.${role}) roles));
  several = mapAttrs (
    _: same: {
      roles = head same;
      ids = anyOf (head same);
    }
  ) (groupBy toJSON (filter (roles: length roles > 1) (attrValues leading)));

  # service → its roles that do not lead to all of its instances
  narrow =
    let
      roles = filter (role: reach.narrow.${role}) (attrNames t.roles);
    in
    if roles == [ ] then { } else mapAttrs (_: filter (role: reach.narrow.${role})) leading;
  leadingTo =
    service: key:
    let
      roles = leading.${service} or [ ];
    in
    if narrow.${service} or [ ] == [ ] then
      roles
    else
      filter (role: reachByRole.${role} ? ${key}) roles;

  each = f: mapAttrs (_: f) t.hosts;

  logins = import ./logins.nix t holders;
  latent = import ./latent.nix t reachByRole logins;

  identities = each (import ./identities.nix t reachByRole latent);

  reachableOn = mapAttrs (
    _: identities:
    union (
      map (i: i.reach) (filter (i: i.reach != { }) identities)
      ++ map (i: i.latent) (filter (i: i.latent != { }) identities)
    )
  ) identities;

  listenerKey = host: i: names.listenerKey host.range i.hash i.port;
  proxies = each (
    host:
    map (id: {
      inherit id;
      listenerKey = names.listenerKey host.range (names.hash "socks ${id}") 1080;
    }) (sort lessThan (map (i: i.id) acting.${host.name}))
  );

  listenerKeys =
    host:
    # A user reaches thousands of instances, so there is no call for each on usual hosts.
    (if host.loopback == names.loopback then catAttrs "listenerKey" else map (listenerKey host)) (
      attrValues reachableOn.${host.name}
    )
    ++ catAttrs "listenerKey" proxies.${host.name};

  # How a host reaches an instance. Most hosts restrict no transport.
  transports =
    host:
    if host.transport == "auto" then
      i: i.transports
    else
      i: transport.written (i.transports ++ [ host.transport ]);

  acting = mapAttrs (_: filter (i: i.users ++ i.uids ++ i.units != [ ])) identities;

  relayed = import ./relayed.nix t reachableOn;
in
{
  # The accounts as which users may log in over SSH (logins.nix).
  logins = if t.requests == { } then logins else logins // { users = logins.users // latent.users; };

  # Access while a grant for a role is in force (latent.nix).
  inherit latent;

  # The published services that a role leads to, sorted.
  # services :: { role = [serviceName]; }
  inherit services;
  inherit (reach) idle members;

  # The roles that lead to a service, [ ] if it is not published. Services without a role are
  # missing.
  # leading :: { service = [roleName]; }
  inherit leading;

  # The identities under which processes of a host may act, in the order in which callers are
  # matched, the most specific first: { key, id, reach, users, uids, units, workload }. `acting`
  # contains only identities with an account or unit.
  # identities, acting :: { host = [Identity]; }
  inherit acting identities;

  # The instances that all identities of a host reach together, by SPIFFE ID.
  # reachableOn :: { host = { id = Instance; }; }
  inherit reachableOn;

  # The keys (names.nix) of all local listeners of a host.
  # listenerKeys :: Host -> [Int]
  inherit listenerKeys;

  # role → the IDs that hold it, sorted.
  # holders :: { role = [id]; }
  inherit holders;

  # The roles that lead to the instance of a service with this key.
  # leadingTo :: serviceName -> key -> [roleName]
  inherit leadingTo;

  # The instances that a role leads to, by key.
  # byRole :: { role = { key = Instance; }; }
  byRole = reachByRole;

  # The lists of two or more roles that lead to a service, by their JSON, with the IDs that hold any
  # of the roles.
  # several :: { json = { roles :: [roleName]; ids :: [id]; }; }
  inherit several;

  # Reports whether all roles that lead to a service lead to all of its instances.
  # alike :: serviceName -> Bool
  alike = if narrow == { } then _: true else service: narrow.${service} or [ ] == [ ];

  # When the access that an ID has by some roles ends, in the form of documents.
  # ending :: [roleName] -> id -> { until :: Int } | { }
  inherit ending;

  # The sorted IDs that may connect to one instance of a service, or to any.
  # allowTo :: serviceName -> key -> [id]; allow :: { service = [id]; }
  allowTo = service: key: anyOf (leadingTo service key);
  allow = mapAttrs (service: _: holding (leading.${service} or [ ])) t.services;

  # `reach` of a host's manifest: one entry for each service, sorted by ID.
  # reachEntries :: Host -> [Reachable]
  reachEntries = import ./reachentries.nix {
    inherit
      identities
      listenerKey
      reachableOn
      relayed
      t
      transports
      union
      ;
  };

  # Paths through relays, for topologies that have relays.
  inherit relayed;

  # The transports over which a host reaches an instance, as documents list them.
  # transports :: Host -> Instance -> [String]
  inherit transports;

  # `socks` of a host's manifest: a SOCKS5 listener for each acting identity, sorted by ID.
  # socks :: Host -> [{ id, listen }]
  socks =
    host:
    map (s: {
      inherit (s) id;
      listen = names.listen s.listenerKey;
    }) proxies.${host.name};
}
