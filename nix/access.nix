# The access matrix, walked from principals through roles and groups to services.
# A principal is a node, a service or a user; it reaches the services of its roles
# and of their groups. What no role reaches, nobody reaches.
#
# Everything global is computed once and lazily; what is computed for a host is as
# large as what the host is told. Names of a set are sorted, so what is keyed by ID
# needs no sorting.
t:
let
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    filter
    foldl'
    groupBy
    head
    isInt
    isString
    length
    lessThan
    listToAttrs
    map
    mapAttrs
    sort
    tail
    ;
  names = import ./names.nix;

  set = list: listToAttrs (map (name: { inherit name; value = null; }) list);
  union = sets: if sets == [ ] then { } else foldl' (a: b: a // b) (head sets) (tail sets);

  # role → sorted names of the published services it leads to
  services = mapAttrs
    (_: role: attrNames (set (filter (s: t.services.${s}.published or false)
      (role.services ++ concatMap (g: t.groups.${g} or [ ]) role.groups))))
    t.roles;

  # role → { <service ID> = the instance; }
  reach = mapAttrs (_: names: listToAttrs (concatMap (s: t.services.${s}.instances) names)) services;
  reachOf = roles: union (map (role: reach.${role}) roles);

  # role → the IDs that hold it. A user entitled to no host has no SVID to show.
  holders =
    let
      users = filter (u: u.hosts != [ ]) (attrValues t.users);
      of = p: map (role: { inherit role; inherit (p) id; }) p.roles;
      pairs = concatMap of (attrValues t.hosts) ++ concatMap of users
        ++ concatMap
        (s: if s.roles == [ ] then [ ] else concatMap (i: of { id = i.name; inherit (s) roles; }) s.instances)
        (attrValues t.services);
    in
    mapAttrs (_: map (p: p.id)) (groupBy (p: p.role) pairs);

  # service → the roles that lead to it
  leading = mapAttrs (_: map (p: p.role)) (groupBy (p: p.service)
    (concatLists (attrValues (mapAttrs (role: map (service: { inherit role service; })) services))));

  # Who holds one of these roles. Many services are reached by the same roles.
  key = concatStringsSep " ";
  allowed = mapAttrs (_: roles: attrNames (set (concatMap (r: holders.${r} or [ ]) (head roles))))
    (groupBy key (attrValues leading));

  each = f: mapAttrs (_: f) t.hosts;

  ranges = mapAttrs (cidr: _: names.range cidr) (set (map (h: h.loopback) (attrValues t.hosts)));

  # host → its identities, the most particular first, as callers are matched.
  identities = each (host:
    let
      as = key: id: roles: accounts:
        let callers = host.callers.${key} or accounts; in
        {
          inherit key id;
          reach = reachOf roles;
          users = filter isString callers;
          uids = filter isInt callers;
        };
    in
    map (s: as "service/${s.name}" (s.idOn host.name) s.roles (filter (a: a != "") [ s.user ]))
      (filter (s: s.published || s.roles != [ ]) (map (s: t.services.${s}) host.services))
    ++ map (u: as "user/${u}" t.users.${u}.id t.users.${u}.roles [ u ]) host.users
    ++ [ (as "node" host.id host.roles [ "root" ]) ]);

  # host → { <service ID> = the instance; }
  reached = mapAttrs (_: identities: union (filter (r: r != { }) (map (i: i.reach) identities))) identities;

  spot = cidr: i: names.spot ranges.${cidr} i.hash i.port;
  proxies = host: sort (a: b: a.id < b.id) (map
    (i: { inherit (i) id; spot = spot host.loopback { hash = names.hash "socks ${i.id}"; port = 1080; }; })
    acting.${host.name});

  # host → the spots of its listeners, numbers
  spots = each (host:
    map (if host.loopback == names.loopback then i: i.spot else spot host.loopback) (attrValues reached.${host.name})
    ++ map (s: s.spot) (proxies host));

  # Those that someone on the host acts under.
  acting = mapAttrs (_: filter (i: i.users ++ i.uids != [ ])) identities;
in
{
  inherit acting identities leading reach reached services spots;

  # service → sorted IDs that may connect to it
  allow = mapAttrs (service: _: if leading ? ${service} then allowed.${key leading.${service}} else [ ]) t.services;

  # host → what its identities reach, as its manifest has it, sorted by ID
  reachable = host:
    let
      reaching = filter (i: i.reach != { }) identities.${host.name};
      ids = sort lessThan (map (i: i.id) reaching);
      reachOfID = listToAttrs (map (i: { name = i.id; value = i.reach; }) reaching);
      everyone = { as = ids; };
      as = if length ids < 2 then _: everyone else i: { as = filter (id: reachOfID.${id} ? ${i.entry.id}) ids; };
      listen =
        if host.loopback == names.loopback then _: { }
        else i: { listen = names.listen (spot host.loopback i); };
    in
    map (i: i.entry // listen i // as i) (attrValues reached.${host.name});

  # host → a SOCKS5 listener for each acting identity, sorted by ID
  socks = host: map (s: { inherit (s) id; listen = names.listen s.spot; }) (proxies host);

}
