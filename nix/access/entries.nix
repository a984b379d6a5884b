# Public ports of services, and the hosts with an ingress that listen at them. The forwarder of such
# a host connects strangers under the identity of its node.
# { topology, access } -> { of, entrances, on }
{ topology, access }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    head
    listToAttrs
    mapAttrs
    sort
    ;
  address = import ../resolve/address.nix;
  limits = import ./limits.nix;
  inherit (import ../lib) distinct isInvalid optionalAttrs sorted;
  t = topology;

  public = filter (s: s.publicPorts != { } && s.visibility == "public") (attrValues t.services);

  # The public ports of a service that lead to one of its ports, each with that port.
  portsOf =
    s:
    concatMap (
      p:
      map (port: {
        inherit p port;
        service = s;
        # Callers reach the service under its shared ID, if it has one.
        instances = filter (
          i:
          i.value.entry.port or "" == port.name
          && (i.value.entry.protocol or "") == (port.carried.protocol or "")
          && (s.shared == null || i.value.entry.id == s.shared)
        ) s.reachables;
      }) (if s.several then filter (port: port.name == p.name) s.ports else s.ports)
    ) (filter (p: !isInvalid p.port && p.port != null) (attrValues s.publicPorts));

  nodes = listToAttrs (
    map (host: {
      inherit (host) name;
      value = head (filter (i: i.key == "node") access.identities.${host.name});
    }) (filter (h: elem "ingress" h.capabilities) (attrValues t.hosts))
  );
  # The instances of a public port that the node of a host reaches.
  reached = name: e: filter (i: nodes.${name}.reach ? ${i.name}) e.instances;
  wants = name: p: p.hosts == [ ] || elem name p.hosts;

  # host → its public ports, each with the instance to which it leads.
  on = mapAttrs (
    name: _:
    concatMap (
      e:
      let
        instances = reached name e;
      in
      if wants name e.p && instances != [ ] then [ (e // { instance = head instances; }) ] else [ ]
    ) (concatMap portsOf public)
  ) nodes;

  entry =
    host: e: listen:
    let
      inherit (e) p port service;
    in
    {
      inherit listen;
      inherit (e.instance.value.entry) id;
    }
    // port.carried
    // optionalAttrs (p.serverNames != [ ]) { serverNames = sorted p.serverNames; }
    // optionalAttrs (p.from != [ ]) { from = distinct (sorted (map address.cidr p.from)); }
    // optionalAttrs (port.identity != "none") { announce = true; }
    // optionalAttrs (service.accessLog != "off") { inherit (service) accessLog; }
    // limits.attribute p.limits;

  # Entries with a server name come before the one that takes all other connections.
  before =
    a: b:
    let
      key = e: "${e.listen} ${e.protocol or ""} ${if e ? serverNames then "0" else "1"} ${e.id} ${e.port or ""}";
    in
    key a < key b;
in
{
  # The public ports of a host, each with the public port `p`, the `port` and the `service` that it
  # leads to, and the `instance`.
  # on :: hostName -> [AttrSet]
  on = name: on.${name} or [ ];

  # `entries` of a host's manifest.
  # of :: Host -> [AttrSet]
  of =
    host:
    sort before (
      concatMap (
        e: map (entry host e) (address.program host e.p.port (a: a)).listen
      ) (on.${host.name} or [ ])
    );

  # The nodes that may state the address of a stranger to a port which learns its callers, sorted.
  # entrances :: Service -> Port -> [id]
  entrances =
    s: port:
    if s.publicPorts == { } || port.identity == "none" then
      [ ]
    else
      sorted (
        map (name: t.hosts.${name}.id) (
          filter (name: any (e: e.service.name == s.name && e.port.name == port.name) on.${name}) (
            attrNames nodes
          )
        )
      );

  inherit portsOf;
  # Reports whether the node of a host with an ingress reaches a public port.
  # reaches :: hostName -> AttrSet -> Bool
  reaches = name: e: nodes ? ${name} && reached name e != [ ];
}
