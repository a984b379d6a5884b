# Builds the entry of a service in the manifests of its callers. A service can have several IDs. The
# entry is for one of them, and lists the hosts on which the service has that ID.
# { hostName = Host; } -> Service -> (id -> AttrSet) -> id -> Port -> [hostName] -> { name, value }
hosts:
let
  inherit (builtins)
    all
    any
    catAttrs
    filter
    ;
  inherit (import ../lib) sorted;
  names = import ../lib/names.nix;
  transport = import ./transport.nix;
  # The usual range of local listeners.
  usual = names.range names.loopback;
in
service: named: id: port: on:
let
  hash = names.hash id;
  inherit (port) number;
  listenerKey = names.listenerKey usual hash number;
  key = if port.key == "" then id else id + port.key;
  # The transports that the publishing hosts and the service demand; usually none.
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
    # The entry in a manifest, on hosts with the default range of listeners.
    entry = {
      inherit id;
      # The endpoints within networks depend on the caller, and are added for each host.
      endpoints = filter (e: e != [ ]) (catAttrs "anywhere" (catAttrs "forwarder" at));
      listen = names.listen listenerKey;
    }
    // port.carried
    // port.remote
    // named id
    // (
      if service.protocol == "ssh" then
        { hostKeys = sorted (filter (k: k != "") (catAttrs "sshHostKey" at)); }
      else
        { }
    )
    // (if service.record.recipients == [ ] then { } else { recorded = true; })
    // transport.attribute transports;
  };
}
