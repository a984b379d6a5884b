# Faults of upstreams that are the forwarder itself, or the socket from which systemd loads
# credentials: connections would return to the forwarder until it has none left, or be refused.
{ t, lib, ... }:
let
  inherit (builtins)
    any
    elem
    filter
    head
    match
    ;
  inherit (import ../lib) distinct;
  inherit (import ../lib/names.nix) machine;
  inherit (lib) attribute fault show;

  isIts =
    upstream: h:
    let
      port = match ".*:([0-9]+)" upstream;
      on = machine upstream;
      socket = match "unix:/run/florete(_[a-z0-9-]+)?/credentials\\.sock" upstream;
    in
    socket != null
    || port != null
    && head port == toString h.forwarderPort
    && match "unix:.*" upstream == null
    && (on == null || elem on h.machines);
in
# String -> [Fault]
n:
let
  service = t.services.${n};
  hosts = map (h: t.hosts.${h}) (filter (h: t.hosts ? ${h}) service.hosts);
in
map (
  p:
  fault {
    id = "FL153";
    place =
      if p.name == "" then "services.${n}.upstream" else "services.${n}.ports.${attribute p.name}.upstream";
    problem = "the forwarder would carry its callers to itself:";
    value = show p.upstream;
    remedy = "write where the service listens";
  }
) (filter (p: p.relies == null && any (isIts p.upstream) hosts) (
  distinct (map (p: { inherit (p) name relies upstream; }) service.ports)
))
