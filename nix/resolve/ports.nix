# What callers reach of a service: its one port, or each of several over each of its protocols.
#
#   key       what follows its ID in the key of an instance: " metrics", " dns udp"; "" of one port.
#             A space sorts before all that names have, so that keys are sorted as entries are
#   name      of the port, "" of one
#   number    that callers use
#   upstream  where it listens
#   relies    on this port of 127.0.0.1; null where something else is written
#   identity  how it learns who calls
#   carried   what its entries in manifests have of it
#
# Service -> [Port]
service:
let
  inherit (builtins)
    attrValues
    concatMap
    elem
    toString
    ;
  inherit (import ../lib) invalid when;

  number =
    of:
    if of.listenPort != null then
      of.listenPort
    else if of.port != null then
      of.port
    else
      invalid.number;
  upstream = of: if of.upstream == "" then "127.0.0.1:${toString of.port}" else of.upstream;
  relies = of: if of.upstream == "" then of.port else null;
  udp = {
    protocol = "udp";
  };

  each =
    p:
    let
      over = key: carried: {
        inherit key;
        inherit (p) name;
        number = number p;
        upstream = upstream p;
        relies = relies p;
        identity = if carried ? protocol then "none" else p.identity;
        carried = {
          port = p.name;
        }
        // carried;
      };
    in
    when (p.protocol != [ "udp" ]) [ (over " ${p.name}" { }) ]
    ++ when (elem "udp" p.protocol) [ (over " ${p.name} udp" udp) ];
in
if service.ports != { } then
  concatMap each (attrValues service.ports)
else
  [
    {
      key = "";
      name = "";
      number = number service;
      upstream = upstream service;
      relies = relies service;
      inherit (service) identity;
      carried = if service.protocol == "udp" then udp else { };
    }
  ]
