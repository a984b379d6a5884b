# Services and relays that a host cannot reach, because it and the other hosts allow different
# transports only.
{
  access,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    attrValues
    catAttrs
    elem
    elemAt
    filter
    ;
  inherit (lib) fault show;
  names = import ../lib/names.nix;
  transport = import ../resolve/transport.nix;
in
n: h:
let
  transports = access.transports h;
  reached = attrValues access.reachableOn.${n};
  excluded =
    if h.transport != "auto" then
      filter (i: transport.excluded (transports i)) reached
    # A user reaches thousands of services, nearly always none that is excluded.
    else if elem true (catAttrs "excluded" reached) then
      filter (i: i.excluded) reached
    else
      [ ];
  # A relay allows what its forwarder listens for.
  relays =
    if t.relaying && h.transport != "auto" then
      filter (r: !transport.listens h.transport t.hosts.${r}) (access.relayed.called h)
    else
      [ ];
in
map (
  i:
  fault {
    id = "FL065";
    place = if h.transport == "auto" then "services.${i.service}.transport" else "hosts.${n}.transport";
    problem = "host ${n} reaches ${names.short i.entry.id} over neither, since what is written excludes";
    value = show (elemAt (transports i) 1);
    remedy = "write the same for the host, the service and the hosts that it runs on, or \"auto\" where either will do";
  }
) excluded
++ map (
  r:
  fault {
    id = "FL065";
    place = "hosts.${n}.transport";
    problem = "it calls relay ${r}, which allows ${t.hosts.${r}.transport} only, not";
    value = show h.transport;
    remedy = "write the same for both hosts, or \"auto\" where either will do";
  }
) relays
