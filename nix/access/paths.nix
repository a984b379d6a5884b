# Paths through relays: from callers to the hosts that keep a connection to a relay. A path is
# { by, target, label }: it has one relay, or two of which the caller calls the first, and that one
# the second. What is computed for a host is as large as what its manifest holds.
# Topology -> (hostName -> [target]) -> { digest, direct, everywhere, of, path, vertex }
t: targetsOf:
let
  inherit (builtins)
    all
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    hashString
    head
    intersectAttrs
    mapAttrs
    substring
    ;
  inherit (import ../lib)
    first
    genAttrs
    named
    toSet
    ;
  inherit (import ../resolve/relays.nix) calls;
  names = import ../lib/names.nix;

  most = 2; # first relays for one second relay

  digest =
    lines: substring 0 32 (hashString "sha256" (concatStringsSep "\n" (lines ++ [ t.pathSalt ])));
  vertex = relay: names.id t.trustDomain "vertex/${relay}";
  path = by: target: {
    inherit by target;
    label = digest [
      t.trustDomain
      (concatStringsSep " " by)
      target
    ];
  };

  # The hosts that keep a connection to a relay.
  targets = named (filter (h: h.uplinks != [ ]) (attrValues t.hosts));
  relays = filter (h: h.relay) (attrValues t.hosts);
  # Reports whether every host can call every relay.
  everywhere = all (r: r.networks == { }) relays;

  # target → its paths of one relay; target → relay → first relay → the path of the two
  direct = mapAttrs (target: h: map (r: path [ r ] target) h.uplinks) targets;
  two = mapAttrs (
    target: h:
    genAttrs h.uplinks (
      r:
      genAttrs (map (b: b.name) (
        filter (b: b.name != r && b.name != target && calls b t.hosts.${r}) relays
      )) (before: path [ before r ] target)
    )
  ) targets;
in
{
  inherit
    digest
    direct
    everywhere
    path
    vertex
    ;

  # host → its paths by target
  of = mapAttrs (
    name: host:
    let
      on = targetsOf name;
      calling = filter (r: calls host r) relays;
      # First relays: the uplinks of the host before others.
      before =
        target: relay:
        let
          known = two.${target}.${relay};
          own = filter (r: elem r host.uplinks) (map (r: r.name) calling);
          others = filter (r: !elem r host.uplinks) (map (r: r.name) calling);
        in
        first most (filter (r: known ? ${r}) (own ++ others));
      to =
        target:
        concatMap (
          p:
          let
            relay = head p.by;
          in
          if calls host t.hosts.${relay} then
            [ p ]
          else
            map (r: two.${target}.${relay}.${r}) (before target relay)
        ) direct.${target};
    in
    if everywhere then
      removeAttrs (intersectAttrs (toSet on) direct) [ name ]
    else
      genAttrs (filter (h: h != name) on) to
  ) t.hosts;
}
