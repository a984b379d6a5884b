# Finds the hosts on which a service may be placed. These are the servers that have the required
# tags and capabilities and are in the required group.
#
# A host with `drain` or `cordon` accepts no further services. It keeps only those in its attribute
# `keeps`, which the topology lists because the compiler does not know earlier placements. A service
# that runs on all hosts also stays, because there is no other host to which it can move.
# { hosts, paths, placed } -> { of :: Service -> [hostName], fitting :: Placement -> [hostName] }
{
  hosts,
  paths,
  placed,
}:
let
  inherit (builtins)
    all
    attrValues
    elem
    filter
    groupBy
    head
    length
    mapAttrs
    toJSON
    ;
  inherit (import ../lib) path shared;

  # Requirements → the hosts that fit. Many services have the same requirements.
  servers = filter (h: h.kind == "server") (attrValues hosts);
  required =
    p:
    toJSON [
      p.capabilities
      p.group
      p.tags
    ];
  fits = mapAttrs (
    _: alike:
    let
      p = head alike;
      group = path p.group;
      fit =
        h:
        all (t: elem t h.tags) p.tags
        && all (c: elem c h.capabilities) p.capabilities
        && (group == [ ] || shared group paths.${h.name} == length group);
    in
    map (h: h.name) (filter fit servers)
  ) (groupBy required (map (s: s.placement) placed));

  # The hosts that fit and take the service.
  closed = filter (h: h.drain || h.cordon) servers;
  stays = service: service.replicas == "all";
  takes = service: h: !(h.drain || h.cordon) || elem service.name h.keeps;
in
rec {
  fitting = p: fits.${required p};
  of =
    service:
    let
      all = fitting service.placement;
    in
    if closed == [ ] || stays service then all else filter (h: takes service hosts.${h}) all;
}
