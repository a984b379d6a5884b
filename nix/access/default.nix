# The access matrix, walked from principals through roles and groups to services.
# A principal is a node, a service or a user; it reaches the services of its roles
# and of their groups. What no role reaches, nobody reaches.
#
# Everything global is computed once and lazily; what is computed for a host is as
# large as what the manifest of the host holds. Names of a set are sorted, so what is keyed by ID
# needs no sorting.
t:
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    elem
    filter
    foldl'
    groupBy
    head
    intersectAttrs
    length
    lessThan
    listToAttrs
    mapAttrs
    sort
    tail
    toJSON
    ;
  inherit (import ../lib) invert toSet;
  address = import ../resolve/address.nix;
  callersOf = import ./callers.nix;
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

  # role → the sorted IDs that hold it. A user entitled to no host has no SVID to show.
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

  # Who holds one of these roles. Many services are reached by the same several roles.
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

  # service → those of its roles that do not lead to all of its instances
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

  identities = each (import ./identities.nix t reachByRole);

  reachableOn = mapAttrs (
    _: identities: union (map (i: i.reach) (filter (i: i.reach != { }) identities))
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
    map (if host.loopback == names.loopback then i: i.listenerKey else listenerKey host) (
      attrValues reachableOn.${host.name}
    )
    ++ map (s: s.listenerKey) proxies.${host.name};

  # Most hosts have nothing of their own there.
  transports =
    host:
    if host.transport == "auto" then
      i: i.transports
    else
      i: transport.written (i.transports ++ [ host.transport ]);

  acting = mapAttrs (_: filter (i: i.users ++ i.uids ++ i.units != [ ])) identities;
in
{
  # The services that a role leads to, published and sorted.
  # services :: { role = [serviceName]; }
  inherit services;
  inherit (reach) idle members;

  # The roles that lead to a service, none where it is not published. Services without a
  # role are not in it.
  # leading :: { service = [roleName]; }
  inherit leading;

  # Who may be acted under on a host: { key, id, reach, users, uids, units, workload }, the most particular
  # first, as callers are matched; `acting` has those that somebody acts under.
  # identities, acting :: { host = [Identity]; }
  inherit acting identities;

  # What all identities of a host reach together, by SPIFFE ID.
  # reachableOn :: { host = { id = Instance; }; }
  inherit reachableOn;

  # The keys (names.nix) of all local listeners of a host.
  # listenerKeys :: Host -> [Int]
  inherit listenerKeys;

  # role → the IDs that hold it, sorted.
  # holders :: { role = [id]; }
  inherit holders;

  # The roles that lead to a service by one of the keys of its instances.
  # leadingTo :: serviceName -> key -> [roleName]
  inherit leadingTo;

  # The several roles that lead to one service or many, by their JSON, and who holds any of them.
  # several :: { json = { roles :: [roleName]; ids :: [id]; }; }
  inherit several;

  # Do all roles that lead to a service lead to all of it?
  # alike :: serviceName -> Bool
  alike = if narrow == { } then _: true else service: narrow.${service} or [ ] == [ ];

  # When what some roles give to an ID ends, as documents have it.
  # ending :: [roleName] -> id -> { until :: Int } | { }
  inherit ending;

  # Who may connect to a service, sorted: to one of its instances, or to any.
  # allowTo :: serviceName -> key -> [id]; allow :: { service = [id]; }
  allowTo = service: key: anyOf (leadingTo service key);
  allow = mapAttrs (service: _: holding (leading.${service} or [ ])) t.services;

  # `reach` of a host's manifest: one entry for each service, sorted by ID.
  # reachEntries :: Host -> [Reachable]
  reachEntries =
    host:
    let
      # Where this host calls what is not called alike by all, itself above all.
      reachable = reachableOn.${host.name};
      here = listToAttrs (
        concatMap (
          s:
          filter (i: reachable ? ${i.name} && elem i.value.entry.id (s.idsOn host.name)) s.reachables
        ) host.running
      );
      isNetworked = host.networks != { };
      endpoints = i: {
        endpoints = filter (e: e != [ ]) (
          map (on: address.called (h: h.forwarder) host t.hosts.${on}) i.on
        );
      };
      # Most hosts listen and connect in the same way, and have the entries that all have.
      plain = host.loopback == names.loopback && host.transport == "auto" && !isNetworked;
      # What differs from the entry of others because of how this host is.
      own =
        i:
        (
          if host.loopback == names.loopback then
            { }
          else
            { listen = names.listen (listenerKey host i); }
        )
        // transport.attribute (transports host i);
      entry = i: i.entry // own i // (if isNetworked && i.networked then endpoints i else { });
      entries = union (
        map (
          { callers, reach }:
          let
            called = { inherit callers; };
          in
          mapAttrs (if plain then _: i: i.entry // called else _: i: entry i // called) reach
        ) (callersOf identities.${host.name})
      );
    in
    attrValues (entries // mapAttrs (key: i: entries.${key} // endpoints i) here);

  # What is written of how a host reaches an instance.
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
