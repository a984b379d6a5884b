# Faults of the public ports of services.
{
  access,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    groupBy
    head
    length
    mapAttrs
    ;
  inherit (import ../lib) isInvalid;
  inherit (import ../resolve/publicnames.nix) onHosts;
  inherit (lib)
    attribute
    excluded
    fault
    faultIf
    missing
    show
    unknown
    when
    ;
  entries = import ../access/entries.nix {
    inherit access;
    topology = t;
  };
  at = n: p: "services.${n}.publicPorts.${attribute p.name}";

  ingress = filter (h: elem "ingress" h.capabilities) (attrValues t.hosts);

  # A public port that no host with an ingress serves, or not each that it names.
  served =
    n: p:
    let
      all = filter (e: e.p.name == p.name) (entries.portsOf t.services.${n});
      isServed = name: any (entries.reaches name) all;
      known = filter (name: t.hosts ? ${name}) p.hosts;
      unserved = filter (name: !isServed name) known;
      missed =
        value: remedy:
        fault {
          id = "FL164";
          place = at n p + (if p.hosts == [ ] then "" else ".hosts");
          problem = "the node of no ingress reaches the service, at port";
          inherit value remedy;
        };
      role = names: "give the node of ${concatStringsSep " or " names} a role that reaches ${n}: hosts.${head names}.roles";
    in
    when (all != [ ]) (
      if p.hosts != [ ] then
        map (
          name:
          fault {
            id = "FL164";
            place = "${at n p}.hosts";
            problem = "it is no ingress whose node reaches the service:";
            value = show name;
            remedy =
              if elem "ingress" t.hosts.${name}.capabilities then
                role [ name ]
              else
                "declare hosts.${name}.capabilities = [ \"ingress\" ];, or take it out";
          }
        ) unserved
      else
        when (!any (h: isServed h.name) ingress) [
          (missed (toString p.port) (
            if ingress == [ ] then
              "declare capabilities = [ \"ingress\" ] on the host that takes in strangers, and give its node a role that reaches ${n}"
            else
              role (map (h: h.name) ingress)
          ))
        ]
    );

  port =
    n: s: p:
    if isInvalid p.port then
      [ ]
    else if p.port == null then
      missing (at n p) "port" "write port = 25;"
    else if s.ports != { } && !s.ports ? ${p.name} then
      unknown "FL163" "port" s.ports "services.${n}.publicPorts" [ p.name ]
    else
      when
        (
          p.serverNames != [ ]
          && any (e: e.p.name == p.name && e.port.carried ? protocol) (entries.portsOf t.services.${n})
        )
        (
          excluded "take it out: only a connection over TCP can begin with a TLS handshake" "${at n p}.serverNames" "protocol = \"udp\""
        )
      ++ lib.host "${at n p}.hosts" p.hosts
      ++ when (s.visibility == "public" && s.scope != "node") (served n p);

  service =
    n: s:
    when (s.visibility != "public") (
      excluded "write visibility = \"public\";" "services.${n}.publicPorts" "visibility = ${show s.visibility}"
    )
    ++ when (s.scope == "node") (
      excluded "write scope = \"both\";: strangers reach any of its hosts" "services.${n}.publicPorts" "scope = \"node\""
    )
    ++ concatMap (port n s) (attrValues s.publicPorts);

  # Pairs of a list, each once.
  pairs =
    list:
    concatLists (
      genList (
        j:
        genList (i: {
          a = elemAt list i;
          b = elemAt list j;
        }) j
      ) (length list)
    );
  common = a: b: filter (n: elem n b) a;

  # Public ports that the reverse proxy of a host has, for public names.
  proxied =
    n:
    let
      all = filter (e: elem e.p.port [ 80 443 ] && !e.port.carried ? protocol) (entries.on n);
    in
    when (all != [ ] && (onHosts (t // { inherit access; })).${n} != { }) (
      map (
        e:
        fault {
          id = "FL165";
          place = at e.service.name e.p;
          problem = "on host ${n}, the reverse proxy for public names already has";
          value = toString e.p.port;
          remedy = "write another port or other hosts";
        }
      ) all
    );

  # Public ports of a host that take the same connections.
  host =
    n:
    proxied n
    ++ concatMap (
      { a, b }:
      let
        same = common a.p.serverNames b.p.serverNames;
        alike = a.p.port == b.p.port && (a.port.carried.protocol or "") == (b.port.carried.protocol or "");
        clash = same != [ ] || a.p.serverNames == [ ] && b.p.serverNames == [ ];
      in
      faultIf (alike && clash) {
        id = "FL165";
        place = at b.service.name b.p;
        problem = "on host ${n}, public port ${a.p.name} of service ${a.service.name} already has";
        value = toString b.p.port + (if same == [ ] then "" else " for ${head same}");
        remedy = "give one of them another port, other hosts, or serverNames by which callers mean it";
      }
    ) (pairs (entries.on n));
in
{
  # service :: String -> Service -> [Fault]; host :: String -> [Fault]
  inherit service host;

  # The programs for strangers that listen on a host, in the form of ports.nix.
  programs =
    n:
    let
      all = entries.on n;
      outside = map (e: {
        what = "service ${e.service.name} for outside caller ${e.caller.name}";
        place = "outside.${e.caller.name}.via";
        protocol = e.port.carried.protocol or "tcp";
        inherit (e.instance) port;
      }) (entries.outsideOn n);
      program = e: {
        what = "public port ${e.p.name} of service ${e.service.name}";
        place = at e.service.name e.p;
        protocol = e.port.carried.protocol or "tcp";
        inherit (e.p) port;
      };
      # Public ports that share a port are checked above.
      once = mapAttrs (_: head) (groupBy (p: "${toString p.port}/${p.protocol}") (map program all ++ outside));
    in
    attrValues once;
}
