# Listeners for callers without an identity: public ports of services at hosts with an ingress, and
# ports for outside callers. The forwarder connects these callers under the identity of its node.
# { topology, access } -> { of, entrances, on, outsideOn }
{ topology, access }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    groupBy
    head
    listToAttrs
    mapAttrs
    sort
    ;
  address = import ../resolve/address.nix;
  limits = import ./limits.nix;
  gate = import ../resolve/gate.nix;
  inherit (import ../resolve/outside.nix) id role;
  inherit (import ../lib) isInvalid optionalAttrs sorted;
  t = topology;

  # Reports whether the host that publishes a port must know which callers are not in the cluster.
  learns = s: port: port.identity != "none" || gate.guards s port;

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

  # host → the instances that outside callers reach through it, each with the caller.
  outside = mapAttrs (
    _: callers:
    concatMap (
      caller:
      map (instance: {
        inherit caller instance;
        service = t.services.${instance.service};
        port = head (
          filter (
            p:
            p.name == instance.entry.port or ""
            && (p.carried.protocol or "") == (instance.entry.protocol or "")
          ) t.services.${instance.service}.ports
        );
      }) (filter (i: t.services ? ${i.service}) (attrValues access.byRole.${role caller.name}))
    ) callers
  ) (groupBy (o: o.via) (attrValues t.outside));

  entryOutside =
    e: listen:
    {
      inherit listen;
      inherit (e.instance.entry) id;
      outside = e.caller.name;
    }
    // optionalAttrs (e.caller.addresses != [ ]) { from = address.networks e.caller.addresses; }
    // optionalAttrs e.caller.mtls { caller = id t e.caller.name; }
    // e.port.carried
    // optionalAttrs (learns e.service e.port) { announce = true; }
    // optionalAttrs (e.service.accessLog != "off") { inherit (e.service) accessLog; };

  entry =
    e: listen:
    let
      inherit (e) p port service;
    in
    {
      inherit listen;
      inherit (e.instance.value.entry) id;
    }
    // port.carried
    // optionalAttrs (p.serverNames != [ ]) { serverNames = sorted p.serverNames; }
    // optionalAttrs (p.from != [ ]) { from = address.networks p.from; }
    // optionalAttrs (learns service port) { announce = true; }
    // optionalAttrs (service.accessLog != "off") { inherit (service) accessLog; }
    // limits.attribute p.limits;

  # Entries for some server names or networks come before the one that takes all other connections.
  before =
    a: b:
    let
      key =
        e:
        "${e.listen} ${e.protocol or ""} ${if e ? serverNames then "0" else "1"} ${
          if e ? from then "0" else "1"
        } ${e.id} ${e.port or ""} ${e.outside or ""}";
    in
    key a < key b;
in
{
  # The public ports of a host, each with the public port `p`, the `port` and the `service` that it
  # leads to, and the `instance`.
  # on :: hostName -> [AttrSet]
  on = name: on.${name} or [ ];

  # What outside callers reach through a host, each with the `caller`, the `instance`, and the
  # `service` and `port`.
  # outsideOn :: hostName -> [AttrSet]
  outsideOn = name: outside.${name} or [ ];

  # `entries` of a host's manifest.
  # of :: Host -> [AttrSet]
  of =
    host:
    sort before (
      concatMap (
        e: map (entry e) (address.program host e.p.port (a: a)).listen
      ) (on.${host.name} or [ ])
      ++ concatMap (
        e: map (entryOutside e) (address.program host e.instance.port (a: a)).listen
      ) (outside.${host.name} or [ ])
    );

  # The nodes that may state the address of a stranger to a port which learns its callers, sorted.
  # entrances :: Service -> Port -> [id]
  entrances =
    s: port:
    let
      isFor = e: e.service.name == s.name && e.port.name == port.name;
    in
    if s.publicPorts == { } && t.outside == { } || !learns s port then
      [ ]
    else
      sorted (
        map (name: t.hosts.${name}.id) (
          filter (name: any isFor (on.${name} or [ ] ++ outside.${name} or [ ])) (
            filter (name: t.hosts ? ${name}) (attrNames nodes ++ attrNames outside)
          )
        )
      );

  inherit portsOf;
  # Reports whether the node of a host with an ingress reaches a public port.
  # reaches :: hostName -> AttrSet -> Bool
  reaches = name: e: nodes ? ${name} && reached name e != [ ];
}
