# Services that a host reaches, and that those who publish them, and the host itself, want to
# be reached over different things.
{
  access,
  clean,
  lib,
  ...
}:
let
  inherit (builtins)
    all
    attrValues
    elemAt
    filter
    map
    ;
  inherit (lib) fault show;
  names = import ../lib/names.nix;
  transport = import ../resolve/transport.nix;

  # Mostly nothing is written, and then nothing excludes anything.
  free = all (of: of.transport == "auto");
in
if free (attrValues clean.hosts) && free (attrValues clean.services) then
  _: _: [ ]
else
  n: h:
  let
    transports = access.transports h;
    excluded =
      if h.transport == "auto" then i: i.excluded else i: transport.excluded (transports i);
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
  ) (filter excluded (attrValues access.reachableOn.${n}))
