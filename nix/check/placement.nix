# Faults of the placement of services.
{
  clean,
  shapes,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    groupBy
    head
    length
    toJSON
    ;
  inherit (import ../lib) distinct isInvalid toSet;
  inherit (lib)
    excluded
    fault
    faultIf
    host
    missing
    service
    show
    suggest
    unknown
    when
    ;
  list = concatStringsSep ", ";
  # The size also counts for services that name their hosts.
  default = (import ../language/service.nix).zero.placement;
  unwritten = removeAttrs default [ "size" ];

  # Most services only name a host.
  isNamed = s: s.host != "" && s.hosts == [ ] && s.replicas == null && s.placement == default;
  where =
    n: s:
    let
      p = s.placement;
      near = filter (h: !isInvalid h) p.near;
      chosen = s.replicas != null && !isInvalid s.replicas;
      given = s.host != "" || s.hosts != [ ];
      naming = if s.host != "" then "host = ${show s.host}" else "hosts";
      # A placement with a wrong value has been reported.
      placed = removeAttrs p [ "size" ] != unwritten && shapes.services.${n} == [ ];
      ofAll = a: excluded "it runs on every host that fits: take it out" "services.${n}.placement.${a}" "replicas = \"all\"";
    in
    when (s.host != "" && s.hosts != [ ]) (
      excluded "keep one of the two" "services.${n}.hosts" naming
    )
    ++ when (chosen && given) (excluded "keep one of the two" "services.${n}.replicas" naming)
    ++ when (s.replicas == null && given && placed) (
      excluded "write replicas instead of naming hosts, or take it out" "services.${n}.placement" naming
    )
    ++ when (s.replicas == null && !given && placed) (
      missing "services.${n}" "replicas"
        "write on how many of the hosts that fit it runs, replicas = 2; or \"all\""
    )
    ++ when (s.replicas == null && !given && !placed) (
      missing "services.${n}" "host"
        "write host = ${toJSON (if clean.hosts == { } then "…" else head (attrNames clean.hosts))};"
    )
    ++ when chosen (fits n s)
    ++ when (s.replicas == "all") (
      when (p.strategy != "minimize-movement") (
        excluded "it runs on every host that fits: take the strategy out" "services.${n}.placement.strategy"
          "replicas = \"all\""
      )
      ++ when (p.spread != "none") (ofAll "spread")
      ++ when (p.pins != [ ]) (ofAll "pins")
    )
    ++ when (p.strategy == "locality" && near == [ ]) (
      missing "services.${n}.placement" "near" "name the hosts it should be near to, near = [ \"…\" ];"
    )
    ++ when (p.strategy != "locality" && near != [ ]) (
      excluded "write strategy = \"locality\";, or take it out" "services.${n}.placement.near"
        "strategy = ${show p.strategy}"
    )
    ++ grouped n p.group
    ++ host "services.${n}.placement.near" near
    ++ host "services.${n}.placement.pins" p.pins
    ++ concatLists (
      map
        (
          a:
          service "services.${n}.placement.${a}" p.${a}
          ++ when (elem n p.${a}) (
            excluded "its replicas are on different hosts already: name others, or write spread = \"one-per-group\";"
              "services.${n}.placement.${a}"
              "itself, service ${n}"
          )
        )
        [
          "apart"
          "apartByGroup"
        ]
    );

  # An unknown group is reported, and has no hosts.
  grouped =
    n: group:
    when (group != "") (
      unknown "FL016" "group of hosts" groups "services.${n}.placement.group" [ group ]
    );
  groups = toSet (concatMap t.outward (attrNames clean.hostGroups));
  servers = filter (h: h.kind == "server") (attrValues t.hosts);

  # Values that a placement requires and no server has.
  lacking =
    p: attribute: what:
    let
      all = concatMap (h: h.${attribute}) servers;
      missing = v: !elem v all;
    in
    map (v: "the ${what} ${show v}: ${suggest what v (attrNames (toSet all))}") (
      filter missing p.${attribute}
    );

  fits =
    n: s:
    let
      p = s.placement;
      impossible = lacking p "tags" "tag" ++ lacking p "capabilities" "capability";
      unknownGroup = fitting == [ ] && grouped n p.group != [ ];
      fitting = t.placement.candidates s;
      wanted = if s.replicas == "all" then 1 else s.replicas;
      on = t.placement.hosts s;
      left = t.placement.left s;
      others = list (distinct (t.placement.others s));
      count = a: length (left.${a} or [ ]);
      groups = length (attrNames (groupBy (h: clean.hosts.${h}.group) (left.free or [ ])));
      because =
        when (count "apart" > 0) [ "${toString (count "apart")} taken by services that it must be apart from (${others})" ]
        ++ when (count "apartByGroup" > 0) [
          "${toString (count "apartByGroup")} in a group taken by services that it must be apart from (${others})"
        ]
        ++ when (count "capacity" > 0) [ "${toString (count "capacity")} full" ]
        ++ when (p.spread == "one-per-group" && groups < count "free") [
          "${toString (count "free")} in no more groups than ${toString groups}"
        ];
      remedy =
        if count "capacity" > 0 then
          "declare more servers or a higher capacity, or want fewer"
        else if count "apart" + count "apartByGroup" > 0 then
          "declare more servers, want fewer, give those it is apart from pins of their own, or take one of the constraints out"
        else
          "declare servers in further groups, want fewer, or write spread = \"even\";";
    in
    # A wrong value has been reported, and fits no host.
    if unknownGroup || elem "" (p.tags ++ p.capabilities) then
      [ ]
    else if length fitting < wanted then
      [
        (fault {
          id = "FL032";
          place = "services.${n}.replicas";
          problem = "${toString (length fitting)} of the hosts fit its placement, it wants";
          value = toString s.replicas;
          remedy =
            if impossible == [ ] then
              "want fewer, require fewer tags and capabilities, or declare more servers"
            else
              "no server has ${head impossible}";
        })
      ]
    else if length on < wanted then
      [
        (fault {
          id = "FL121";
          place = "services.${n}.placement";
          problem = "${toString (length fitting)} hosts fit, ${list because}; it runs on ${toString (length on)}, and wants";
          value = toString s.replicas;
          inherit remedy;
        })
      ]
    else if s.replicas == "all" then
      [ ]
    else
      concatLists (map (pin n s) (filter (h: t.hosts ? ${h} && !elem h on) (distinct p.pins)));

  # A host with a drain or cordon does not need to fit for now.
  pin =
    n: s: h:
    let
      left = t.placement.left s;
      fault' = problem: remedy: [
        (fault {
          id = "FL122";
          place = "services.${n}.placement.pins";
          inherit problem remedy;
          value = "host ${h}";
        })
      ];
      before = list (t.placement.others s);
    in
    if !elem h (t.placement.fitting s) then
      fault' "its placement fits other hosts, not" "require what hosts.${h} has, or take the pin out"
    else if !elem h (t.placement.candidates s) then
      [ ]
    else if elem h (left.apart or [ ]) then
      fault' "a service that it must be apart from (${before}) runs on" "take one of the two away from there"
    else if elem h (left.apartByGroup or [ ]) then
      fault' "a service that it must be apart from (${before}) runs in the group of" "take one of the two away from there"
    else if elem h (left.capacity or [ ]) then
      fault' "others fill" "write a higher hosts.${h}.capacity, or take the pin out"
    else
      fault' "with fewer replicas than pins, or two of these in one group, it does not run on"
        "want more replicas, or take the pin out";

  # A service that names a host runs there regardless of capacity.
  full =
    n: h:
    let
      bound = t.placement.bound n;
    in
    faultIf (h.capacity != null && !isInvalid h.capacity && bound > h.capacity) {
      id = "FL123";
      place = "hosts.${n}.capacity";
      problem = "those services that name the host need ${toString bound}, it has";
      value = toString h.capacity;
      remedy = "write capacity = ${toString bound}; or more, or have some of them on other hosts";
    };
in
{
  inherit full isNamed where;
}
