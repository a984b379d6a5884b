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
    concatMap
    elem
    filter
    foldl'
    groupBy
    head
    intersectAttrs
    isInt
    isString
    length
    lessThan
    listToAttrs
    map
    mapAttrs
    sort
    tail
    toJSON
    ;
  address = import ./address.nix;
  index = import ./index.nix;
  names = import ./names.nix;

  set = list: listToAttrs (map (name: { inherit name; value = null; }) list);
  union = sets: if sets == [ ] then { } else foldl' (a: b: a // b) (head sets) (tail sets);

  # role → the services that it names, itself or by groups; not all exist
  members = mapAttrs (_: role: role.services ++ concatMap (g: t.serviceGroups.${g} or [ ]) role.serviceGroups) t.roles;

  # role → sorted names of the published services it leads to
  services = mapAttrs (_: members: attrNames (set (filter (s: t.services.${s}.published or false) members))) members;

  # role → { <service ID> = the instance; }
  reach = mapAttrs (_: names: listToAttrs (concatMap (s: t.services.${s}.instances) names)) services;
  reachOf = roles: union (map (role: reach.${role}) roles);

  # role → the sorted IDs that hold it. A user entitled to no host has no SVID to show.
  holders = mapAttrs
    (_: by: attrNames (set (
      map (h: t.hosts.${h}.id) by.hosts
      ++ map (u: u.id) (filter (u: u.hosts != [ ]) (map (u: t.users.${u}) by.users))
      ++ concatMap (s: map (i: i.name) t.services.${s}.instances) by.services
    )))
    t.holders;

  # service → the roles that lead to it
  leading = mapAttrs (service: roles: if t.services.${service}.published then roles else [ ])
    (intersectAttrs t.services (index (role: members.${role.name}) (attrValues t.roles)));

  # Who holds one of these roles. Many services are reached by the same several roles.
  holding = roles:
    if roles == [ ] then [ ]
    else if tail roles == [ ] then holders.${head roles}
    else several.${toJSON roles};
  several = mapAttrs (_: same: attrNames (set (concatMap (role: holders.${role}) (head same))))
    (groupBy toJSON (filter (roles: length roles > 1) (attrValues leading)));

  each = f: mapAttrs (_: f) t.hosts;

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

  spot = host: i: names.spot host.range i.hash i.port;
  proxies = host: sort (a: b: a.id < b.id) (map
    (i: { inherit (i) id; spot = spot host { hash = names.hash "socks ${i.id}"; port = 1080; }; })
    acting.${host.name});

  # host → the spots of its listeners, numbers
  spots = each (host:
    map (if host.loopback == names.loopback then i: i.spot else spot host) (attrValues reached.${host.name})
    ++ map (s: s.spot) (proxies host));

  # Those that someone on the host acts under.
  acting = mapAttrs (_: filter (i: i.users ++ i.uids != [ ])) identities;
in
{
  inherit acting identities leading reach reached services spots;

  # service → sorted IDs that may connect to it
  allow = mapAttrs (service: _: holding (leading.${service} or [ ])) t.services;

  # host → what its identities reach, as its manifest has it, sorted by ID
  reachable = host:
    let
      reaching = filter (i: i.reach != { }) identities.${host.name};
      ids = sort lessThan (map (i: i.id) reaching);
      reachOfID = listToAttrs (map (i: { name = i.id; value = i.reach; }) reaching);
      everyone = { callers = ids; };
      callers = if length ids < 2 then _: everyone else i: { callers = filter (id: reachOfID.${id} ? ${i.entry.id}) ids; };
      # Where this host calls what is not called alike by all, itself above all.
      endpoints = i:
        if !(elem host.name i.on) && (host.networks == { } || !i.networked) then { }
        else { endpoints = filter (e: e != [ ]) (map (on: address.called "forwarder" host t.hosts.${on}) i.on); };
      listen =
        if host.loopback == names.loopback then _: { }
        else i: { listen = names.listen (spot host i); };
    in
    map (i: i.entry // endpoints i // listen i // callers i) (attrValues reached.${host.name});

  # host → a SOCKS5 listener for each acting identity, sorted by ID
  socks = host: map (s: { inherit (s) id; listen = names.listen s.spot; }) (proxies host);
}
