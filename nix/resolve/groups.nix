# Resolves host groups, and the attributes that hosts inherit from their groups. Groups are nested
# by their names: the group "eu/fra" is part of the group "eu".
# clean topology -> { outward; hosts; timed; }
clean:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elemAt
    filter
    foldl'
    genList
    isString
    length
    mapAttrs
    split
    ;
  inherit (import ../lib) genAttrs latest;

  # "eu/fra" → [ "eu" "eu/fra" ]
  outward =
    group:
    let
      labels = filter isString (split "/" group);
    in
    genList (i: concatStringsSep "/" (genList (elemAt labels) (i + 1))) (length labels);

  # An attribute of a host: from its groups, from the outside in, and then its own.
  inherited =
    host: attribute:
    concatMap (g: clean.hostGroups.${g}.${attribute} or [ ]) (outward host.group) ++ host.${attribute};
  groupsOf = host: map (g: clean.hostGroups.${g}) (filter (g: clean.hostGroups ? ${g}) (outward host.group));
  # Of several ends of a role the latest applies, and none if one source gives the role without an
  # end.
  ending = any (g: g.until != { }) (attrValues clean.hostGroups);
  until =
    host:
    let
      all = groupsOf host ++ [ host ];
      good = concatMap (e: filter (r: !e.until ? ${r}) e.roles) all;
    in
    removeAttrs (latest (map (e: e.until) all)) good;
  # Relays are not added up: a host without relays of its own has those of its innermost group.
  relaying = any (g: g.relays != [ ]) (attrValues clean.hostGroups);
  relays =
    name: host:
    if host.relays != [ ] then
      host.relays
    else
      filter (r: r != name) (
        foldl' (outer: g: if g.relays == [ ] then outer else g.relays) [ ] (groupsOf host)
      );
  hosts = mapAttrs (
    name: host:
    if host.group == "" then
      host
    else
      host
      // genAttrs [
        "capabilities"
        "roles"
        "tags"
        "users"
      ] (inherited host)
      // (if ending || host.until != { } then { until = until host; } else { })
      // (if relaying then { relays = relays name host; } else { })
  ) clean.hosts;
in
{
  inherit hosts outward;
  # Hosts with roles that end.
  timed = filter (name: hosts.${name}.until != { }) (attrNames hosts);
}
