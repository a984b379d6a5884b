# Paths through relays: from callers to the hosts that keep a connection to a relay. A path is
# { by, target, label }: it has one relay, or two of which the caller calls the first, and that one
# the second. What is computed for a host is as large as what its manifest holds.
# Topology -> { host = { id = Instance; }; } -> Paths
t: reachableOn:
let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    hashString
    head
    intersectAttrs
    listToAttrs
    mapAttrs
    sort
    substring
    tail
    ;
  inherit (import ../lib)
    first
    optionalAttrs
    sorted
    toSet
    ;
  inherit (import ../resolve/relays.nix) calls;
  address = import ../resolve/address.nix;
  limits = import ./limits.nix;
  names = import ../lib/names.nix;
  transport = import ../resolve/transport.nix;

  most = 2; # first relays for one second relay

  digest =
    lines: substring 0 32 (hashString "sha256" (concatStringsSep "\n" (lines ++ [ t.pathSalt ])));
  vertex = relay: names.id t.trustDomain "vertex/${relay}";
  # The name of a service in handshakes that pass a relay.
  opaque =
    id:
    digest [
      "name"
      id
    ];
  path = by: target: {
    inherit by target;
    label = digest [
      t.trustDomain
      (concatStringsSep " " by)
      target
    ];
  };

  relays = filter (h: h.relay) (attrValues t.hosts);
  # Reports whether every host can call every relay.
  everywhere = all (r: r.networks == { }) relays;
  targets = filter (h: h.uplinks != [ ]) (attrValues t.hosts);

  # target → its paths of one relay; target → relay → first relay → the path of the two
  direct = listToAttrs (
    map (h: {
      inherit (h) name;
      value = map (r: path [ r ] h.name) h.uplinks;
    }) targets
  );
  two = mapAttrs (
    target: _:
    listToAttrs (
      map (r: {
        name = r;
        value = listToAttrs (
          map (before: {
            inherit (before) name;
            value = path [
              before.name
              r
            ] target;
          }) (filter (b: b.name != r && b.name != target && calls b t.hosts.${r}) relays)
        );
      }) t.hosts.${target}.uplinks
    )
  ) direct;

  # The instances on hosts with uplinks, by key: those hosts, and the attributes of the entries in
  # manifests of callers that have all paths.
  relayed = listToAttrs (
    concatMap (
      s:
      map (i: {
        inherit (i) name;
        value =
          let
            on = filter (h: t.hosts.${h}.uplinks != [ ]) i.value.on;
          in
          {
            inherit on;
            entry = entry i.value.entry.id (concatMap (h: direct.${h}) on);
          };
      }) s.reachables
    ) services
  );
  services = attrValues (
    listToAttrs (
      concatMap (
        h:
        map (s: {
          inherit (s) name;
          value = s;
        }) (filter (s: s.published) h.running)
      ) targets
    )
  );
  entry = id: paths: {
    opaqueName = opaque id;
    via = sort (a: b: if a.by == b.by then a.label < b.label else a.by < b.by) (
      map (p: { inherit (p) by label; }) paths
    );
  };

  # host → { reached, paths }: the instances that it reaches on hosts with uplinks, and its paths by
  # target
  of = mapAttrs (
    name: host:
    let
      reached = intersectAttrs reachableOn.${name} relayed;
      on = attrNames (toSet (concatMap (r: r.on) (attrValues reached)));
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
    {
      inherit reached;
      paths =
        if everywhere then
          removeAttrs (intersectAttrs (toSet on) direct) [ name ]
        else
          listToAttrs (
            map (target: {
              name = target;
              value = to target;
            }) (filter (h: h != name) on)
          );
    }
  ) t.hosts;
  pathsOf = name: concatLists (attrValues of.${name}.paths);

  inherit
    (import ./routes.nix {
      inherit
        path
        pathsOf
        t
        vertex
        ;
    })
    parts
    routes
    ;

  # Reports whether relays may tell a host's address to the other ends of its paths, and theirs to it.
  # Two relays on a path do not know both ends, and a relay need not go around itself.
  meets =
    host:
    !host.hidden
    && (
      host.uplinks != [ ] || any (p: p.by != [ host.name ] && tail p.by == [ ]) (pathsOf host.name)
    );

  # Relays that a host calls: for its own paths, and as a relay for the paths of others.
  called =
    host:
    sorted (
      host.uplinks
      ++ map (p: head p.by) (pathsOf host.name)
      ++ map (r: r.after) (filter (r: r ? after) (if host.relay then parts.${host.name} or [ ] else [ ]))
    );
in
{
  # The relays whose addresses are in the manifest of a host.
  # called :: Host -> [hostName]
  inherit called;

  # Reports whether an instance runs on a host that keeps a connection to a relay.
  # isRelayed :: key -> Bool
  isRelayed = key: relayed ? ${key};

  # The attributes of entries of `reach` in a host's manifest, by key of the instance.
  # via :: Host -> { key = { via, opaqueName }; }
  via =
    host:
    let
      inherit (of.${host.name}) paths reached;
      own = mapAttrs (
        key: r: entry reachableOn.${host.name}.${key}.entry.id (concatMap (h: paths.${h} or [ ]) r.on)
      ) reached;
    in
    if everywhere && host.uplinks == [ ] then
      mapAttrs (_: r: r.entry) reached
    else
      listToAttrs (
        filter (e: e.value.via != [ ]) (
          map (name: {
            inherit name;
            value = own.${name};
          }) (attrNames own)
        )
      );

  # The attributes of an entry of `publish` in a host's manifest.
  # published :: Host -> id -> { opaqueName } | { }
  published = host: id: if host.uplinks == [ ] then { } else { opaqueName = opaque id; };

  # The attributes of `forwarder` in a host's manifest, without empty ones.
  # forwarder :: Host -> { relays, uplinks, relay }
  forwarder =
    host:
    optionalAttrs (called host != [ ]) {
      relays = listToAttrs (
        map (name: {
          inherit name;
          value = {
            id = vertex name;
            addresses = address.called (h: h.forwarder) host t.hosts.${name};
          }
          // transport.attribute (
            transport.written [
              t.hosts.${name}.transport
              host.transport
            ]
          );
        }) (called host)
      );
    }
    // optionalAttrs (host.uplinks != [ ]) { inherit (host) uplinks; }
    // optionalAttrs (meets host) { meet = true; }
    // optionalAttrs host.relay {
      relay = {
        id = vertex host.name;
        routes = routes host.name;
      }
      // limits.attribute host.relayLimits;
    };
}
