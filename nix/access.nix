# The access matrix, walked from principals through roles and groups to services.
# A principal is a node, a service or a user; it reaches the services of its roles
# and of their groups. What no role reaches, nobody reaches.
t:
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    foldl'
    groupBy
    isInt
    isString
    lessThan
    listToAttrs
    map
    mapAttrs
    sort
    ;
  names = import ./names.nix;

  set = list: listToAttrs (map (name: { inherit name; value = null; }) list);

  # role → { <service> = null; }, the published ones
  reach = mapAttrs
    (_: role: set (filter (s: t.services.${s}.published or false)
      (role.services ++ concatMap (g: t.groups.${g} or [ ]) role.groups)))
    t.roles;
  reachOf = roles: foldl' (sum: role: sum // reach.${role} or { }) { } roles;

  # role → the IDs that hold it. A user entitled to no host has no SVID to show.
  holders = mapAttrs (_: map (p: p.id)) (groupBy (p: p.role)
    (concatMap (p: map (role: { inherit role; inherit (p) id; }) p.roles) (
      attrValues t.hosts
      ++ filter (u: u.hosts != [ ]) (attrValues t.users)
      ++ concatMap (s: map (i: { inherit (i) id; inherit (s) roles; }) s.instances) (attrValues t.services)
    )));

  rolesReaching = groupBy (p: p.service)
    (concatMap (role: map (service: { inherit role service; }) (attrNames reach.${role})) (attrNames reach));

  # loopback range → service ID → its listener's address there
  addresses = listToAttrs (map
    (cidr:
      let range = names.range cidr; in
      {
        name = cidr;
        value = listToAttrs (map
          (i: { name = i.id; value = names.addressIn range i.id; })
          (concatMap (s: s.instances) (attrValues t.services)));
      })
    (attrNames (set (map (h: h.loopback) (attrValues t.hosts)))));

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

  # Those that someone on the host acts under.
  acting = mapAttrs (_: filter (i: i.users ++ i.uids != [ ])) identities;
in
{
  inherit acting identities reach;

  # service → sorted IDs that may connect to it
  allow = mapAttrs
    (service: _: attrNames (set (concatMap (p: holders.${p.role} or [ ]) (rolesReaching.${service} or [ ]))))
    t.services;

  # host → what its identities reach, sorted by ID
  reachable = each (host:
    let
      pairs = concatMap (i: map (service: { inherit service; as = i.id; }) (attrNames i.reach)) identities.${host.name};
      listeners = service: as: map
        (i: {
          inherit (i) id;
          as = sort lessThan (map (p: p.as) as);
          listen = names.hostPort addresses.${host.loopback}.${i.id} t.services.${service}.listenPort;
          endpoints = sort lessThan (map (h: t.hosts.${h}.forwarderAddress) i.hosts);
        })
        t.services.${service}.instances;
      byService = groupBy (p: p.service) pairs;
    in
    sort (a: b: a.id < b.id) (concatMap (s: listeners s byService.${s}) (attrNames byService)));

  # host → a SOCKS5 listener for each acting identity, sorted by ID
  socks = each (host:
    let range = names.range host.loopback; in
    sort (a: b: a.id < b.id) (map
      (i: {
        inherit (i) id;
        listen = names.hostPort (names.addressIn range "socks ${i.id}") 1080;
      })
      acting.${host.name}));
}
