# Services as data.
# Topology -> { serviceName = AttrSet; }
t:
let
  inherit (builtins)
    any
    attrValues
    elem
    filter
    foldl'
    groupBy
    head
    intersectAttrs
    mapAttrs
    ;
  inherit (import ../../lib) only optionalAttrs sorted;
  names = import ../../lib/names.nix;
  publicNames = import ../publicnames.nix;
  redirected = publicNames.redirects t;

  # The upstream of a service outside its hosts, or "" if it runs on them.
  outside =
    s:
    let
      upstreams = filter (u: u != "") (map (outsideOf s) s.ports);
    in
    if upstreams == [ ] then "" else head upstreams;
  outsideOf =
    s: port:
    let
      machine = names.machine port.upstream;
    in
    if machine == null || any (h: elem machine t.hosts.${h}.machines) s.hosts then
      ""
    else
      port.upstream;
  # The ports of a service with several, by name.
  ports =
    s:
    optionalAttrs s.several {
      listenPort = null;
      ports = mapAttrs (_: same: {
        listenPort = (head same).number;
        inherit (head same) upstream;
        outside = outsideOf s (head same);
        protocols = map (p: p.carried.protocol or "tcp") same;
      }) (groupBy (p: p.name) s.ports);
    };
  ofKinds = foldl' (all: k: all // k.service or { }) (import ../../kinds/own.nix).service (
    attrValues (import ../../kinds)
  );
in
mapAttrs (
  _: s:
  only [
    "aliases"
    "facts"
    "hosts"
    "listenPort"
    "placement"
    "port"
    "protocol"
    "published"
    "replicas"
    "roles"
    "scope"
    "tlsAliases"
    "tlsName"
    "until"
    "upstream"
    "user"
    "visibility"
  ] s
  // {
    ids = map (i: i.name) s.instances;
    outside = outside s;
  }
  // ports s
  // optionalAttrs (s.publicPorts != { }) {
    publicPorts = mapAttrs (
      _:
      only [
        "from"
        "hosts"
        "port"
        "serverNames"
      ]
    ) s.publicPorts;
  }
  // optionalAttrs (s.record.recipients != [ ]) { inherit (s) record; }
  // optionalAttrs (s.tlsName != "" && publicNames.rules s != { }) { ingress = publicNames.rules s; }
  // optionalAttrs (s.ingress.hosts != [ ]) { ingressHosts = sorted s.ingress.hosts; }
  // optionalAttrs (redirected ? ${s.name}) { redirects = only redirected.${s.name} t.redirects; }
  // intersectAttrs ofKinds s
) t.services
