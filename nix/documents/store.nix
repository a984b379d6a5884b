# What a provider host knows of the store that all of them share: where its members are, which
# nodes share a sealing key with it, and the member that it keeps itself.
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
  inherit (import ../lib) distinct optionalAttrs sorted;
  inherit (import ../lib/names.nix) hostPort;
  address = import ../resolve/address.nix;
  t = topology;
  inherit (t) store;

  url = at: "https://${at}";
  peers = name: map (a: url (hostPort a (store.port + 1))) t.hosts.${name}.machines;

  # A member listens on addresses alone, one for all of them.
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

  # Of each kind the host whose files have the state that moves here.
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
    # Its own first.
    endpoints = distinct (
      concatMap (m: map url (address.called (h: h.store) host t.hosts.${m})) (
        filter (m: m == host.name) store.hosts ++ filter (m: m != host.name) store.hosts
      )
    );
    replicas = listToAttrs (
      map (kind: {
        name = kind;
        value = map (h: { inherit (t.hosts.${h}) id sshHostKey; }) (sorted t.providers.${kind}.hosts);
      }) host.kinds
    );
    keyLifetime = store.keyLifetime * 86400;
  }
  // optionalAttrs (elem host.name store.hosts) { member = member host; }
  // optionalAttrs (moved host != { }) { from = moved host; };
}
