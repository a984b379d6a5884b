# Where services are to run: on the hosts that they name. For those with replicas it is a
# pure function of who the hosts are, so that the plan tells every move before it happens.
# Candidates are servers that have the tags, capabilities and group asked for.
#
#   minimize-movement  rendezvous hashing: a host that comes takes only its share, a
#                      host that goes gives away only its own
#   balanced           the hosts that run least, counted over services in order of name
#   locality           the hosts whose group has most in common with those `near`
{ hosts, services }:
let
  inherit (builtins)
    all
    attrNames
    attrValues
    elem
    elemAt
    filter
    foldl'
    genList
    hashString
    head
    isList
    length
    listToAttrs
    map
    mapAttrs
    sort
    split
    ;
  index = import ./index.nix;
  take = n: list: genList (elemAt list) (if n < length list then n else length list);

  path = group: filter (p: !isList p && p != "") (split "/" group);
  # How many groups two paths have in common, from the outside in.
  shared = a: b:
    if a == [ ] || b == [ ] || head a != head b then 0
    else 1 + shared (rest a) (rest b);
  rest = list: genList (i: elemAt list (i + 1)) (length list - 1);
  within = outer: inner: shared (path outer) (path inner) == length (path outer);

  servers = filter (h: hosts.${h}.kind == "server") (attrNames hosts);
  fitting = p: filter
    (h: all (t: elem t hosts.${h}.tags) p.tags
      && all (c: elem c hosts.${h}.capabilities) p.capabilities
      && within p.group hosts.${h}.group)
    servers;

  # Hosts in an order of preference, equals in the order of their hashes with the service.
  rank = name: before: candidates:
    let hashed = map (host: { inherit host; hash = hashString "sha256" "${name} ${host}"; }) candidates; in
    map (h: h.host) (sort (a: b: if before a.host == before b.host then a.hash < b.hash else before a.host < before b.host) hashed);

  near = p: host:
    let depth = h: shared (path hosts.${h}.group) (path hosts.${host}.group); in
    0 - foldl' (best: h: if depth h > best then depth h else best) 0 (filter (h: hosts ? ${h}) p.near);

  names = service: service.replicas == null || service.replicas == -1;
  named = service: if service.host == "" then service.hosts else [ service.host ] ++ service.hosts;

  choose = load: name:
    let
      service = services.${name};
      p = service.placement;
      before =
        if p.strategy == "balanced" then h: load.${h} or 0
        else if p.strategy == "locality" then near p
        else _: 0;
    in
    take service.replicas (rank name before (fitting p));

  # One after the other, each sees what those before it were given.
  spread = foldl'
    (sum: name:
      let on = choose sum.load name; in
      {
        load = sum.load // listToAttrs (map (h: { name = h; value = sum.load.${h} or 0 + 1; }) on);
        chosen = sum.chosen // { ${name} = on; };
      })
    { load = mapAttrs (_: length) (index named (attrValues services)); chosen = { }; }
    (filter (s: !names services.${s} && services.${s}.placement.strategy == "balanced") (attrNames services));

  chosen = mapAttrs
    (name: service: if service.placement.strategy == "balanced" then spread.chosen.${name} else choose { } name)
    services;
in
{
  # service → its hosts: those that it names, of which not all need exist, or those chosen
  # for it, in order of preference
  hosts = service: if names service then named service else chosen.${service.name};

  inherit fitting;
}
