# Resolves all references in a topology. The result says which services run on which hosts, and
# under which IDs. The input was cleaned by language/. Unknown references are dropped here, and
# check/ reports them. All indexes are computed once and lazily, so evaluating one host does not
# evaluate the others.
# clean topology -> Topology
clean:
let
  inherit (builtins)
    attrNames
    attrValues
    catAttrs
    concatLists
    concatMap
    elem
    filter
    intersectAttrs
    mapAttrs
    ;
  inherit (import ../lib)
    distinct
    genAttrs
    invert
    known
    optionalAttrs
    sorted
    ;
  aliases = import ./aliases.nix;
  names = import ../lib/names.nix;
  part = import ./part.nix;
  relays = import ./relays.nix;
  address = import ./address.nix;
  id = names.id clean.trustDomain;

  usual = names.range names.loopback;

  inherit (clean) roles serviceGroups;
  rolesOf = holder: if holder.roles == [ ] then [ ] else sorted (known roles holder.roles);

  groups = import ./groups.nix clean;
  inherit (groups) outward timed;
  written = groups.hosts;

  # The store that providers share: its members, their addresses, and the lifetime of a sealing key.
  store = clean.providers.store // {
    hosts = sorted (known clean.hosts clean.providers.store.hosts);
    from = known clean.hosts clean.providers.store.from;
    shared = clean.providers.store.kind == "etcd";
  };
  providers = mapAttrs (_: p: p // { hosts = distinct (known clean.hosts p.hosts); }) (
    removeAttrs clean.providers [ "store" ]
  );
  kinds = invert (p: p.hosts) (attrValues (mapAttrs (name: p: p // { inherit name; }) providers));

  all = {
    hosts = attrValues written;
    services = attrValues clean.services;
    users = attrValues clean.users;
    foreign = concatMap (f: f.identities) abroad;
  };

  inherit ((import ./foreign.nix).instances { inherit clean rolesOf; }) abroad clusters federated;

  placement = import ./placement.nix {
    hosts = written;
    inherit (clean) services;
  };
  # Services without a host are listed under "".
  placed = invert (
    s:
    let
      on = placement.hosts s;
    in
    if on == [ ] then [ "" ] else on
  ) all.services;
  wanting = import ../kinds/wanting.nix clean.services;
  # Services that nobody may call.
  hidden = map (s: s.name) (filter (s: s.visibility == "host") all.services);
  # Services with fewer hosts than they want.
  unplaced = sorted (concatLists (attrValues (removeAttrs placed (attrNames clean.hosts))));

  entitled = invert (h: h.users) all.hosts;

  # role → the names of its holders
  holders =
    let
      holding = mapAttrs (_: invert (holder: holder.roles)) all;
    in
    mapAttrs (
      role: _:
      mapAttrs (_: by: by.${role} or [ ]) holding
      // (if role == "node" then { hosts = attrNames clean.hosts; } else { })
    ) roles;

  # The process that answers a kind of need on a host, with its port.
  process =
    name: host: kind:
    let
      port = clean.providers.${kind}.port or (host.providerPort + (import ../kinds).${kind}.port);
    in
    address.program host port (a: names.hostPort (address.machine a) port)
    // {
      inherit port;
      id = id "service/${name}/${names.provider kind}";
    };

  hosts = mapAttrs (
    name: host:
    host
    // {
      id = id "node/${name}";
      roles = if roles ? node then sorted ([ "node" ] ++ rolesOf host) else rolesOf host;
      capabilities = sorted host.capabilities;
      tags = sorted host.tags;
      users = sorted (known clean.users host.users);
      services = placed.${name} or [ ];
      # Services on the host as values: looking one up by name in a large set costs more than the
      # work with it.
      running = map (s: services.${s}) (placed.${name} or [ ]);
      # The services with needs of some kind.
      wanting = map (s: services.${s}) (filter (s: wanting ? ${s}) (placed.${name} or [ ]));
      kinds = kinds.${name} or [ ];
      range = if host.loopback == names.loopback then usual else names.range host.loopback;
      forwarder =
        let
          at = host: address.program host host.forwarderPort (address.at host.forwarderPort);
        in
        if host.hidden then relays.hide (at (host // { bind = [ "127.0.0.1" ]; })) else at host;
      # relays to which the host keeps a connection
      uplinks = if host.relays == [ ] then [ ] else relays.uplinks hosts hosts.${name};
      # kind → its process on the host
      provider = genAttrs (kinds.${name} or [ ]) (process name host);
      machines = address.machines host;
      # The addresses of the store's member on the host.
      store = address.program host store.port (a: names.hostPort (address.machine a) store.port);
    }
  ) written;

  services = mapAttrs (import ./service.nix {
    inherit clean hosts placement rolesOf;
  }) clean.services;
  users = mapAttrs (name: user: {
    id = id "user/${name}";
    inherit (user) approvalKeys limits until;
    teams = user.teams or [ ];
    roles = rolesOf user;
    hosts = entitled.${name} or [ ];
  }) clean.users;
  requests = import ./requests.nix { inherit clean users; };
  parts = part.parts {
    inherit clean services;
    inherit (groups) hosts outward;
  };
in
{
  inherit (clean)
    elsewhere
    name
    outside
    pathSalt
    redirects
    teams
    trustDomain
    ;
  # A threshold of one changes nothing, and no document has it.
  trust =
    removeAttrs clean.trust [ "threshold" ]
    // optionalAttrs (clean.trust.threshold > 1) { inherit (clean.trust) threshold; };
  kinds = (import ../kinds/own.nix).kinds clean;
  elsewhereProviders = (import ./foreign.nix).providers clean;
  # Reports whether any host carries connections of others.
  relaying = elem true (catAttrs "relay" all.hosts);
  aliases = aliases.owners all.services;
  inherit
    unplaced
    abroad
    clusters
    federated
    hidden
    holders
    hosts
    outward
    parts
    placement
    providers
    requests
    roles
    serviceGroups
    services
    store
    timed
    users
    wanting
    ;
}
# Attributes that only one kind of need reads, as they were written.
// intersectAttrs (import ../language).ofKinds clean
