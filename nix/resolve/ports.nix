# Lists the ports of a service. A service with a single port has one entry. A service with several
# ports has an entry for each port and each protocol of that port. An entry has these attributes:
#
#   key       suffix of the ID in the key of an instance: " metrics", " dns udp"; "" if the
#             service has one port. A space sorts before all characters of names, so keys
#             sort as entries do
#   name      name of the port, "" for an only port
#   number    number that callers use
#   upstream  address at which the service listens
#   relies    port of 127.0.0.1 on which the service listens; null with another upstream
#   identity  how the service learns its callers
#   carried   attributes of the port's entries in manifests
#   remote    the attribute `remote` of manifests if people open sessions at the port
#
# Service -> [Port]
let
  inherit (builtins)
    attrValues
    concatMap
    elem
    toString
    ;
  inherit (import ../lib) invalid when;
  inherit (import ./remote.nix) isRemote;

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
        remote = { };
        carried = {
          port = p.name;
        }
        // carried;
      };
    in
    when (p.protocol != [ "udp" ]) [ (over " ${p.name}" { }) ]
    ++ when (elem "udp" p.protocol) [ (over " ${p.name} udp" udp) ];
in
service:
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
      remote = if isRemote service.protocol then { remote = service.protocol; } else { };
    }
  ]
