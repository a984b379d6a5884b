# A service with its hosts, IDs, ports and instances.
# { clean, hosts, placement, rolesOf } -> name -> clean service -> Service
{
  clean,
  hosts,
  placement,
  rolesOf,
}:
let
  inherit (builtins) concatMap head;
  inherit (import ../lib)
    invalid
    known
    sorted
    when
    ;
  aliases = import ./aliases.nix;
  names = import ../lib/names.nix;
  portsOf = import ./ports.nix;
  id = names.id clean.trustDomain;
  instance = import ./instance.nix hosts;
in
name: service:
let
  on = sorted (known clean.hosts (placement.hosts service));
  ports = portsOf service;
  record = service.record // { recipients = sorted service.record.recipients; };
  several = service.ports != { };
  scoped = service.scope == "node" || service.scope == "both";
  own = host: id "service/${host}/${name}";
  shared = if service.scope == "node" then null else id "service/${name}";
  # Hosts that share an ID share the value.
  idOn = if scoped then own else _: shared;
  ids = [ shared ];
  # Aliases in callers' entries, which all hosts of the service share.
  named = aliases.named clean.trustDomain service shared;
  at =
    port:
    (if scoped then map (host: instance service named (own host) port [ host ]) on else [ ])
    ++ (if shared == null || on == [ ] then [ ] else [ (instance service named shared port on) ]);
  instances = at (if several then head ports // { key = ""; } else head ports);
in
service
// {
  # Its ID on a host. With scope "both", idsOn adds the shared one.
  inherit idOn shared;
  idsOn = if scoped then host: [ (own host) ] ++ when (shared != null) ids else _: ids;
  hosts = on;
  # One instance for each ID, as pairs of name and value. A service with scope "cluster" has one.
  inherit instances ports several;
  # The recipients are sorted.
  inherit record;
  # One instance for each ID and port.
  reachables = if several then concatMap at ports else instances;
  published = service.visibility != "host";
  # Whether the service has an ID, to call others or to be called.
  acts = service.visibility != "host" || rolesOf service != [ ] || service.workloadApi;
  # The attributes of its entry in the manifest of a host: for a port, its owner, and how it
  # learns callers.
  servedOn =
    host: port:
    let
      at = service.process clean.hosts.${host}.instance;
    in
    (
      if service ? process then
        { inherit (at) upstream user; }
      else if service.user == "" then
        { inherit (port) upstream; }
      else
        {
          inherit (port) upstream;
          inherit (service) user;
        }
    )
    // port.carried
    // port.remote
    // (if port.identity == "none" then { } else { inherit (port) identity; })
    // (if service.accessLog == "off" then { } else { inherit (service) accessLog; })
    // (if record.recipients == [ ] then { } else { inherit record; });
  roles = rolesOf service;
  # The attributes of an only port.
  listenPort = if several then invalid.number else (head ports).number;
  upstream = if several then "" else (head ports).upstream;
  aliases = sorted service.aliases;
  tlsAliases = sorted service.tlsAliases;
}
