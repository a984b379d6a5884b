# Connections through relays, as attributes of manifests.
# Topology -> { host = { id = Instance; }; } -> Relayed
t: reachableOn:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    filter
    head
    intersectAttrs
    listToAttrs
    mapAttrs
    sort
    tail
    ;
  inherit (import ../lib)
    genAttrs
    named
    optionalAttrs
    sorted
    toSet
    ;
  address = import ../resolve/address.nix;
  limits = import ./limits.nix;
  transport = import ../resolve/transport.nix;

  targets = filter (h: h.uplinks != [ ]) (attrValues t.hosts);
  # The name of a service in handshakes that pass a relay.
  opaque =
    id:
    digest [
      "name"
      id
    ];
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
  services = attrValues (named (concatMap (h: filter (s: s.published) h.running) targets));
  entry = id: paths: {
    opaqueName = opaque id;
    via = sort (a: b: if a.by == b.by then a.label < b.label else a.by < b.by) (
      map (p: { inherit (p) by label; }) paths
    );
  };

  # host → the instances that it reaches on hosts with uplinks
  reached = mapAttrs (name: _: intersectAttrs reachableOn.${name} relayed) t.hosts;
  inherit
    (import ./paths.nix t (
      name: attrNames (toSet (concatMap (r: r.on) (attrValues reached.${name})))
    ))
    digest
    direct
    everywhere
    of
    path
    vertex
    ;
  pathsOf = name: concatLists (attrValues of.${name});

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
      paths = of.${host.name};
      mine = reached.${host.name};
      own = mapAttrs (
        key: r: entry reachableOn.${host.name}.${key}.entry.id (concatMap (h: paths.${h} or [ ]) r.on)
      ) mine;
    in
    if everywhere && host.uplinks == [ ] then
      mapAttrs (_: r: r.entry) mine
    else
      removeAttrs own (filter (key: own.${key}.via == [ ]) (attrNames own));

  # The attributes of an entry of `publish` in a host's manifest.
  # published :: Host -> id -> { opaqueName } | { }
  published = host: id: if host.uplinks == [ ] then { } else { opaqueName = opaque id; };

  # The attributes of `forwarder` in a host's manifest, without empty ones.
  # forwarder :: Host -> { relays, uplinks, relay }
  forwarder =
    host:
    optionalAttrs (called host != [ ]) {
      relays = genAttrs (called host) (
        name:
        {
          id = vertex name;
          addresses = address.called (h: h.forwarder) host t.hosts.${name};
        }
        // transport.attribute (
          transport.written [
            t.hosts.${name}.transport
            host.transport
          ]
        )
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
