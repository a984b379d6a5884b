# A service under one of its IDs, on the hosts where it has that: what callers' manifests have
# of it.
# { clean, hosts, services, usual } -> serviceName -> id -> Port -> [hostName] -> { name, value }
{
  clean,
  hosts,
  services,
  usual, # range of local listeners
}:
let
  inherit (builtins)
    all
    any
    filter
    map
    ;
  names = import ./names.nix;
  transport = import ./transport.nix;
in
service: id: port: on:
let
  hash = names.hash id;
  inherit (port) number;
  listenerKey = names.listenerKey usual hash number;
  key = if port.key == "" then id else id + port.key;
  # What those have written who publish it, mostly nothing.
  own = clean.services.${service}.transport;
  transports =
    if own == "auto" && all (h: clean.hosts.${h}.transport == "auto") on then
      [ ]
    else
      transport.written ([ own ] ++ map (h: clean.hosts.${h}.transport) on);
in
{
  name = key;
  value = {
    inherit
      hash
      key
      on
      service
      listenerKey
      ;
    port = number;
    networked = any (h: hosts.${h}.networks != { }) on;
    inherit transports;
    excluded = transport.excluded transports;
    # What a manifest has of it, on hosts with the usual range.
    entry = {
      inherit id;
      # Those of a host on several networks differ from caller to caller.
      endpoints = filter (e: e != [ ]) (map (h: hosts.${h}.forwarder.anywhere) on);
      listen = names.listen listenerKey;
    }
    // port.carried
    // services.${service}.named id
    // transport.attribute transports;
  };
}
