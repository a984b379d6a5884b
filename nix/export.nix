# The topology as data: what topology.nix made of it, without functions. Other
# programs read it (florctl plan, explain, graph), so names here are stable.
# Topology -> AttrSet
t:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    elem
    filter
    foldl'
    intersectAttrs
    listToAttrs
    map
    mapAttrs
    ;
  inherit (import ./lib.nix) known only;

  names = import ./names.nix;
  reach = import ./reach.nix t;
  named = filter (n: t.services ? ${n} || t.parts ? ${n});
  # Where a service leads out of its hosts, "" for those that run there.
  outside =
    s:
    let
      machine = names.machine s.upstream;
    in
    if machine == null || any (h: elem machine t.hosts.${h}.machines) s.hosts then "" else s.upstream;
  ofKinds = foldl' (all: k: all // k.service or { }) (import ./kinds/own.nix).service (
    attrValues (import ./kinds)
  );
in
{
  inherit (t) name trustDomain;
  trust = {
    domain = t.trustDomain;
    inherit (t.trust) roots signingKeys;
  };

  # A host without addresses is called by nobody.
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
  ) t.hosts;

  services = mapAttrs (
    _: s:
    only [
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
    // intersectAttrs ofKinds s
  ) t.services;

  facts = import ./facts.nix t;

  users = mapAttrs (
    _:
    only [
      "hosts"
      "id"
      "roles"
      "teams"
      "until"
    ]
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
    // {
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
  ) t.federated;

  roles = mapAttrs (name: r: {
    inherit (r) requires roles;
    serviceGroups = known t.serviceGroups r.serviceGroups;
    services = named r.services;
    except = named r.except;
    # Where that is not all instances of the services that it names.
    reach = if reach.narrow.${name} then attrNames reach.byRole.${name} else null;
    # What it names itself, where it has other roles in it.
    own =
      if r ? own then
        {
          serviceGroups = known t.serviceGroups r.own.serviceGroups;
          services = named r.own.services;
        }
      else
        null;
  }) t.roles;
  serviceGroups = mapAttrs (_: named) t.serviceGroups;
  # What is written with "@", where that leads somewhere.
  parts = mapAttrs (_: only [
    "hosts"
    "service"
  ]) t.parts;
  inherit (t) providers;
}
// mapAttrs (attribute: e: mapAttrs (_: e.shown) t.${attribute}) (import ./language.nix).ofKinds
