# The shared store in the policy of a provider host: the addresses of its members, the nodes that
# share a sealing key, and the member on this host.
topology:
let
  inherit (builtins)
    any
    concatMap
    elem
    filter
    head
    listToAttrs
    match
    ;
  inherit (import ../lib)
    distinct
    genAttrs
    optionalAttrs
    sorted
    ;
  inherit (import ../lib/names.nix) hostPort;
  address = import ../resolve/address.nix;
  t = topology;
  inherit (t) store;

  url = at: "https://${at}";
  peers = name: map (a: url (hostPort a (store.port + 1))) t.hosts.${name}.machines;

  # etcd listens on IP addresses: those of `bind`, or one that stands for all.
  listen =
    host: port:
    map url (
      if host.bind != [ ] then
        map (ip: hostPort ip port) host.bind
      else
        [ (hostPort (if any (a: match ".*:.*" a != null) host.machines then "::" else "0.0.0.0") port) ]
    );

  member =
    host:
    let
      inherit (host) name;
    in
    {
      inherit name;
      clients = {
        listen = listen host store.port;
        called = map (a: url (hostPort a store.port)) host.machines;
      };
      peers = {
        listen = listen host (store.port + 1);
        called = peers name;
      };
      cluster = concatMap (m: map (at: "${m}=${at}") (peers m)) store.hosts;
    };

  # For each kind, the host whose files contain the state that moves into the store.
  moved =
    host:
    listToAttrs (
      concatMap (
        kind:
        let
          hosts = filter (h: elem h t.providers.${kind}.hosts) store.from;
        in
        map (value: {
          name = kind;
          inherit value;
        }) (if hosts == [ ] then [ ] else [ (head hosts) ])
      ) host.kinds
    );
in
# of :: Host -> AttrSet
host:
optionalAttrs store.shared {
  store = {
    inherit (store) kind;
    # The member on the same host is first.
    endpoints = distinct (
      concatMap (m: map url (address.called (h: h.store) host t.hosts.${m})) (
        filter (m: m == host.name) store.hosts ++ filter (m: m != host.name) store.hosts
      )
    );
    replicas = genAttrs host.kinds (
      kind: map (h: { inherit (t.hosts.${h}) id sshHostKey; }) (sorted t.providers.${kind}.hosts)
    );
    keyLifetime = store.keyLifetime * 86400;
  }
  // optionalAttrs (elem host.name store.hosts) { member = member host; }
  // optionalAttrs (moved host != { }) { from = moved host; };
}
