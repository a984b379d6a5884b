# Hosts that a host calls and has no address of, directly or through relays: name → host → faults.
{
  access,
  needs,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    filter
    groupBy
    head
    mapAttrs
    ;
  inherit (import ../lib) distinct toSet;
  inherit (lib) fault;
  relays = import ../resolve/relays.nix;

  written = h: h.address ++ concatLists (attrValues h.networks);

  # A host without any address has a fault of its own. Without networks, an address is reachable
  # from everywhere.
  reaches =
    h: to:
    let
      other = t.hosts.${to};
    in
    relays.calls h other
    ||
      (other.hidden || written other == [ ])
      && (other.kinds != [ ] || other.relay || other.relays == [ ]);
  networked = any (h: h.networks != { }) (attrValues t.hosts);
in
n: h:
let
  calling = attrNames (
    toSet (concatMap (need: filter (p: t.hosts ? ${p}) need.providers) needs.${n})
  );
  via = if t.relaying then access.relayed.via h else { };
  isRelayed = if t.relaying then access.relayed.isRelayed else _: false;
  instances = filter (
    i: (i.networked || isRelayed i.key) && !any (reaches h) i.on && !via ? ${i.key}
  ) (attrValues access.reachableOn.${n});
  known =
    if h.relays != [ ] && h.uplinks == [ ] && any (s: s.published) h.running then
      relays.known t.hosts h
    else
      [ ];
  lacking =
    map (to: {
      inherit to;
      what = "a provider";
    }) (filter (p: !reaches h p) calling)
    ++ map (to: {
      inherit to;
      what = "its relay";
    }) (filter (r: !reaches h r) known)
    ++ map (i: {
      to = head i.on;
      what = "service ${i.service}";
      relays = true;
    }) instances;
  missing =
    to: calls:
    let
      inherit (t.hosts.${to}) networks;
    in
    fault {
      id = "FL060";
      place = "hosts.${n}";
      problem = "it calls ${concatStringsSep ", " (distinct (map (c: c.what) calls))}, and has no address of";
      value = "host ${to}";
      remedy = "write hosts.${to}.address${
        if networks == { } then
          ""
        else
          ", or, in hosts.${n}.networks, a network that ${to} is on: ${concatStringsSep ", " (attrNames networks)}"
      }${
        if all (c: c ? relays) calls then
          "${if networks == { } then ", or" else "; or,"} in hosts.${to}.relays, relays that both can call"
        else
          ""
      }";
    };
in
if networked then attrValues (mapAttrs missing (groupBy (c: c.to) lacking)) else [ ]
