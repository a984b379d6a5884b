# Where services are to run: on the hosts that they name. For those with replicas it is a
# pure function of who the hosts are, so that the plan shows every move before it happens.
# Candidates are servers that have the tags, capabilities and group asked for; who wants
# "all" gets them all. A host with `drain` gets none, one with `cordon` those alone that it
# keeps: nothing here knows what was placed before, so the topology has that.
#
#   minimize-movement  rendezvous hashing: a host that comes takes only its share, a
#                      host that goes gives away only its own
#   balanced           the hosts that run least, counted over services in order of name
#   locality           the hosts whose group has most in common with those `near`
{ hosts, services }:
let
  inherit (builtins)
    all
    attrValues
    elem
    elemAt
    filter
    foldl'
    genList
    groupBy
    hashString
    head
    isList
    length
    lessThan
    listToAttrs
    map
    mapAttrs
    sort
    split
    substring
    toJSON
    ;
  inherit (import ./lib.nix) isInvalid;
  invert = import ./invert.nix;
  take = n: list: genList (elemAt list) (if n < length list then n else length list);

  path = group: filter (p: !isList p && p != "") (split "/" group);
  paths = mapAttrs (_: h: path h.group) hosts;
  # How many groups two paths have in common, from the outside in.
  shared = a: b: if a == [ ] || b == [ ] || head a != head b then 0 else 1 + shared (rest a) (rest b);
  rest = list: genList (i: elemAt list (i + 1)) (length list - 1);

  named = service: if service.host == "" then service.hosts else [ service.host ] ++ service.hosts;
  names = service: service.replicas == null || isInvalid service.replicas;
  choosing = filter (s: !names s) (attrValues services);

  # What is asked for → the hosts that fit. Many services ask for the same.
  servers = filter (h: h.kind == "server") (attrValues hosts);
  asked =
    p:
    toJSON [
      p.capabilities
      p.group
      p.tags
    ];
  fits = mapAttrs (
    _: alike:
    let
      p = head alike;
      group = path p.group;
      fit =
        h:
        all (t: elem t h.tags) p.tags
        && all (c: elem c h.capabilities) p.capabilities
        && (group == [ ] || shared group paths.${h.name} == length group);
    in
    map (h: h.name) (filter fit servers)
  ) (groupBy asked (map (s: s.placement) choosing));
  fitting = p: fits.${asked p};

  # Those of them that a service may be placed on.
  closed = filter (h: h.drain || h.cordon) servers;
  takes = service: h: !h.drain && (!h.cordon || elem service.name h.keeps);
  candidatesOf =
    service:
    let
      all = fitting service.placement;
    in
    if closed == [ ] then all else filter (h: takes service hosts.${h}) all;

  # Hosts in the order of their hashes with the service; a SHA-256 has 64 digits.
  shuffle =
    name: candidates:
    map (substring 65 (-1)) (
      sort lessThan (map (host: "${hashString "sha256" "${name} ${host}"} ${host}") candidates)
    );

  # Hosts from least to most, equals as they come.
  order =
    cost: candidates:
    map (h: h.host) (
      sort (a: b: a.cost < b.cost) (
        map (host: {
          inherit host;
          cost = cost host;
        }) candidates
      )
    );

  distance =
    p: host:
    let
      depth = h: shared paths.${h} paths.${host};
    in
    0 - foldl' (best: h: if depth h > best then depth h else best) 0 (filter (h: hosts ? ${h}) p.near);

  choose =
    load: service:
    let
      p = service.placement;
      candidates = shuffle service.name (candidatesOf service);
    in
    if service.replicas == "all" then
      candidates
    else
      take service.replicas (
        if p.strategy == "balanced" then
          order (h: load.${h} or 0) candidates
        else if p.strategy == "locality" then
          order (distance p) candidates
        else
          candidates
      );

  # One after the other, each sees what those before it were given.
  spread =
    foldl'
      (
        sum: service:
        let
          on = choose sum.load service;
        in
        {
          load =
            sum.load
            // listToAttrs (
              map (h: {
                name = h;
                value = sum.load.${h} or 0 + 1;
              }) on
            );
          chosen = sum.chosen // {
            ${service.name} = on;
          };
        }
      )
      {
        load = mapAttrs (_: length) (invert named (attrValues services));
        chosen = { };
      }
      (filter (s: s.placement.strategy == "balanced") choosing);

  chosen = mapAttrs (
    name: service:
    if service.placement.strategy == "balanced" then spread.chosen.${name} else choose { } service
  ) services;
in
{
  # service → its hosts: those that it names, of which not all need exist, or those chosen
  # for it, in order of preference
  # hosts :: Service -> [hostName]
  hosts = service: if names service then named service else chosen.${service.name};

  # The hosts that fit what the placement of a service requires, and take it.
  # candidates :: Service -> [hostName]
  candidates = candidatesOf;

  # The same without cordon and drain.
  open = import ./placement.nix {
    inherit services;
    hosts = mapAttrs (
      _: h:
      h
      // {
        cordon = false;
        drain = false;
      }
    ) hosts;
  };
}
