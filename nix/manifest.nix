# host → its manifest: what it needs to know and nothing else.
{ topology, access, needs }:
let
  inherit (builtins)
    concatMap
    filter
    listToAttrs
    map
    mapAttrs
    sort
    ;
  t = topology;

  # Entries for all who may connect, made once for each service.
  allow = mapAttrs (_: map (id: { inherit id; })) access.allow;

  publish = host: sort (a: b: a.id < b.id) (map
    (s: {
      id = s.idOn host.name;
      inherit (s) upstream;
      allow = allow.${s.name};
    })
    (filter (s: s.published) (map (s: t.services.${s}) host.services)));

  forwarder = host:
    let published = publish host; in
    (if published == [ ] then { } else { listen = host.forwarderAddress; }) // {
      publish = published;
      reach = access.reachable host;
      callers = map (i: { inherit (i) id users uids; }) access.acting.${host.name};
      socks = access.socks host;
    };
in
name:
let host = t.hosts.${name}; in
{
  cluster = t.name;
  host = name;
  inherit (t) trustDomain trust;
  identity = { inherit (host) id sshHostKey; };
  inherit (host) roles;
  providers = listToAttrs (map
    (p: { name = p; value = { id = t.hosts.${p}.providerID; address = t.hosts.${p}.providerAddress; }; })
    (concatMap (n: n.providers) needs.${name}));
  needs = needs.${name};
  forwarder = forwarder host;
}
