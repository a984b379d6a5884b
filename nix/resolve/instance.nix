# A service under one of its IDs, on the hosts where it has that: what callers' manifests have
# of it.
# { hosts, usual } -> Service -> (id -> AttrSet) -> id -> Port -> [hostName] -> { name, value }
{
  hosts,
  usual, # range of local listeners
}:
let
  inherit (builtins)
    all
    any
    catAttrs
    filter
    ;
  names = import ../lib/names.nix;
  transport = import ./transport.nix;
in
service: named: id: port: on:
let
  hash = names.hash id;
  inherit (port) number;
  listenerKey = names.listenerKey usual hash number;
  key = if port.key == "" then id else id + port.key;
  # What those have written who publish it, mostly nothing.
  transports =
    if service.transport == "auto" && all (h: h.transport == "auto") at then
      [ ]
    else
      transport.written ([ service.transport ] ++ map (h: h.transport) at);
  at = map (h: hosts.${h}) on;
in
{
  name = key;
  value = {
    inherit
      hash
      key
      on
      listenerKey
      ;
    service = service.name;
    port = number;
    networked = any (h: h.networks != { }) at;
    inherit transports;
    excluded = transport.excluded transports;
    # What a manifest has of it, on hosts with the usual range.
    entry = {
      inherit id;
      # Those of a host on several networks differ from caller to caller.
      endpoints = filter (e: e != [ ]) (catAttrs "anywhere" (catAttrs "forwarder" at));
      listen = names.listen listenerKey;
    }
    // port.carried
    // named id
    // transport.attribute transports;
  };
}
