# Returns the topology as data: the result of topology.nix without functions. The commands florctl
# plan, explain and graph read this data, so its attribute names must remain stable.
# Topology -> AttrSet
t:
let
  inherit (builtins) elem mapAttrs;
  inherit (import ../../lib) only optionalAttrs;
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

  services = import ./services.nix t;

  facts = import ../facts.nix t;

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

  inherit (import ./abroad.nix t) clusters federated;

  inherit (import ./roles.nix t) roles serviceGroups;
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
    role = (import ../outside.nix).role name;
  }
  // optionalAttrs o.mtls { id = (import ../outside.nix).id t name; }) t.outside;
}
// mapAttrs (attribute: e: mapAttrs (_: e.shown) t.${attribute}) (import ../../language).ofKinds
