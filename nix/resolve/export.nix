# Returns the topology as data: the result of topology.nix without functions. The commands florctl
# plan, explain and graph read this data, so its attribute names must remain stable.
# Topology -> AttrSet
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
    listToAttrs
    mapAttrs
    ;
  inherit (import ../lib)
    known
    only
    optionalAttrs
    sorted
    ;

  names = import ../lib/names.nix;
  publicNames = import ./publicnames.nix;
  signIn = import ./signinelsewhere.nix;
  redirected = publicNames.redirects t;
  reach = import ../access/reach.nix t;
  logins = (import ../access/logins.nix t { }).granted;
  named = filter (n: t.services ? ${n} || t.parts ? ${n});
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
  # The ports that a role leads to of services with several ports, by ID of the service. Without an
  # entry, the role leads to all.
  reachPorts =
    role:
    mapAttrs (_: same: sorted (map (i: i.entry.port) same)) (
      groupBy (i: i.entry.id) (filter (i: i.entry ? port) (attrValues reach.byRole.${role}))
    );
  # The identities and services of another cluster, by ID.
  elsewhere = f: {
    identities = listToAttrs (
      map (i: {
        inherit (i) name;
        value = i.roles;
      }) f.identities
    );
    services = listToAttrs (
      map (s: {
        inherit (s.instance) name;
        value = s.roles;
      }) f.services
    );
  }
  // (
    let
      public = filter (s: s.tlsName != "") f.services;
      enters = s: h: publicNames.serves h s && any (r: elem r s.roles) h.roles;
    in
    optionalAttrs (public != [ ]) {
      entrances = listToAttrs (
        map (s: {
          inherit (s.instance) name;
          value = map (h: h.id) (filter (enters s) (attrValues t.hosts));
        }) public
      );
    }
  );
  ofKinds = foldl' (all: k: all // k.service or { }) (import ../kinds/own.nix).service (
    attrValues (import ../kinds)
  );
in
{
  inherit (t) name trustDomain;
  trust = {
    domain = t.trustDomain;
  }
  // t.trust;

  # A host without addresses has no attribute for them.
  hosts = mapAttrs (
    _: h:
    only [
      "address"
      "bind"
      "capabilities"
      "deploy"
      "facts"
      "forwarderPort"
      "group"
      "id"
      "instance"
      "kind"
      "kinds"
      "networks"
      "providerPort"
      "roles"
      "services"
      "sshHostKey"
      "system"
      "tags"
      "until"
      "users"
    ] h
    // {
      providerPorts = map (kind: h.provider.${kind}.port) h.kinds;
      storePorts =
        if t.store.shared && elem h.name t.store.hosts then
          [
            t.store.port
            (t.store.port + 1)
          ]
        else
          [ ];
    }
    // optionalAttrs h.hidden { inherit (h) hidden; }
    // optionalAttrs h.relay { inherit (h) relay; }
    // optionalAttrs (h.relays != [ ]) { inherit (h) relays; }
  ) t.hosts;

  services = mapAttrs (
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
  ) t.services;

  facts = import ./facts.nix t;

  users = mapAttrs (
    _: u:
    only [
      "hosts"
      "id"
      "roles"
      "teams"
      "until"
    ] u
    // optionalAttrs (u.approvalKeys != [ ]) { inherit (u) approvalKeys; }
  ) t.users;
  teams = mapAttrs (_: only [
    "roles"
    "until"
  ]) t.teams;

  federated = mapAttrs (
    _: f:
    only [
      "bundle"
      "endpoint"
      "endpointID"
      "profile"
      "trustDomain"
    ] f
    // elsewhere f
  ) t.federated;
  clusters = mapAttrs (
    n: c:
    elsewhere c
    // optionalAttrs ((signIn.clients t).${n} != [ ]) { clients = map (c: c.grant // { inherit (c) sshHostKey; }) (signIn.clients t).${n}; }
    // optionalAttrs ((signIn.needs t).${n} != [ ]) { signIns = (signIn.needs t).${n}; }
  ) t.clusters;

  roles = mapAttrs (name: r: {
    inherit (r) requires roles;
    serviceGroups = known t.serviceGroups r.serviceGroups;
    services = named r.services;
    except = named r.except;
    # Only if the role does not lead to all instances of the services that it names.
    reach =
      if reach.narrow.${name} then
        sorted (map (i: i.entry.id) (attrValues reach.byRole.${name}))
      else
        null;
    # The services that it names itself, if it contains other roles.
    own =
      if r ? own then
        {
          serviceGroups = known t.serviceGroups r.own.serviceGroups;
          services = named r.own.services;
        }
      else
        null;
  }
  // optionalAttrs (reach.narrow.${name} && reachPorts name != { }) { ports = reachPorts name; }
  // optionalAttrs (logins ? ${name}) { logins = logins.${name}; }
  // optionalAttrs (t.requests ? ${name}) {
    request = {
      inherit (r.request) approve by most;
      users = t.requests.${name}.by;
      approvers = t.requests.${name}.approve;
    };
  }
  ) t.roles;
  serviceGroups = mapAttrs (_: named) t.serviceGroups;
  # Names with "@" or ":" that exist.
  parts = mapAttrs (
    _: p:
    only [
      "hosts"
      "service"
    ] p
    // optionalAttrs (p.port != null) { inherit (p) ids port; }
  ) t.parts;
  inherit (t) providers;
  # Machines without an agent, with the role by which the node of their host connects them.
  outside = mapAttrs (name: o: {
    inherit (o) addresses via;
    role = (import ./outside.nix).role name;
  }
  // optionalAttrs o.mtls { id = (import ./outside.nix).id t name; }) t.outside;
}
// mapAttrs (attribute: e: mapAttrs (_: e.shown) t.${attribute}) (import ../language).ofKinds
