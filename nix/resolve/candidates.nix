# Who may run what is placed: servers that have the tags, capabilities and group that are required.
# A host with `drain` or `cordon` takes nothing but what it keeps: nothing here knows what was placed
# before, so the topology has that. What each host has of its own cannot run elsewhere and stays.
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

  # What is required → the hosts that fit. Many services require the same.
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

  # Those of them that a service may be placed on.
  closed = filter (h: h.drain || h.cordon) servers;
  stays = service: service.replicas == "all" && service.scope != "cluster";
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
