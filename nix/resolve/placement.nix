# Where services are to run: on the hosts that they name. For those with replicas it is a
# pure function of who the hosts are, so that the plan shows every move before it happens.
# Of the hosts that candidates.nix finds come those first that preference.nix prefers; who
# wants "all" gets them all.
#
#   minimize-movement  rendezvous hashing: a host that comes takes only its share, a
#                      host that goes gives away only its own
#   balanced           the hosts that run least, counted over services in order of name
#   locality           the hosts whose group has most in common with those `near`
#
# Where it matters what runs elsewhere (`balanced`, `apart`, `capacity`) services are placed
# one after the other, those with pins first and those on "all" last.
{ hosts, services }:
let
  inherit (builtins)
    any
    attrValues
    concatMap
    elemAt
    filter
    foldl'
    genList
    groupBy
    length
    listToAttrs
    mapAttrs
    ;
  inherit (import ../lib) invert isInvalid known toSet;
  take = n: list: genList (elemAt list) (if n < length list then n else length list);

  paths = mapAttrs (_: h: (import ../lib).path h.group) hosts;
  named = service: if service.host == "" then service.hosts else [ service.host ] ++ service.hosts;
  names = service: service.replicas == null || isInvalid service.replicas;
  choosing = filter (s: !names s) (attrValues services);

  candidates = import ./candidates.nix {
    inherit hosts paths;
    placed = choosing;
  };
  prefer = import ./preference.nix { inherit hosts paths; };

  # Whom a service is to be apart from: those that it names, and those that name it.
  apart =
    attribute:
    let
      naming = filter (s: s.placement.${attribute} != [ ]) choosing;
      by = invert (s: s.placement.${attribute}) naming;
      forth = listToAttrs (
        map (s: {
          inherit (s) name;
          value = s.placement.${attribute};
        }) naming
      );
    in
    name: filter (other: other != name) (known services (forth.${name} or [ ] ++ by.${name} or [ ]));
  fromHosts = apart "apart";
  fromGroups = apart "apartByGroup";

  limited = any (h: h.capacity != null) (attrValues hosts);
  fill = load: on: size: load // mapAttrs (h: _: load.${h} or 0 + size) (toSet on);
  bound = mapAttrs (_: on: foldl' (sum: s: sum + services.${s}.placement.size) 0 on) (
    invert named (attrValues services)
  );

  # What those before it leave of a service's candidates, and what they do not.
  left =
    sum: service:
    let
      on = concatMap (other: sum.chosen.${other}.hosts or (named services.${other}));
      here = toSet (on (fromHosts service.name));
      groups = toSet (map (h: hosts.${h}.group) (known hosts (on (fromGroups service.name))));
      why =
        h:
        if here ? ${h} then
          "apart"
        else if groups ? ${hosts.${h}.group} then
          "apartByGroup"
        else if
          hosts.${h}.capacity != null
          && !isInvalid hosts.${h}.capacity
          && sum.load.${h} or 0 + service.placement.size > hosts.${h}.capacity
        then
          "capacity"
        else
          "free";
      fit = candidates.of service;
      independent = here == { } && groups == { } && !limited;
    in
    if independent then { free = fit; } else groupBy why fit;

  choose =
    sum: service:
    let
      of = left sum service;
      preferred = prefer sum.load service (of.free or [ ]);
    in
    {
      inherit of;
      hosts = if service.replicas == "all" then preferred else take service.replicas preferred;
    };

  depends =
    s:
    limited
    || s.placement.strategy == "balanced"
    || fromHosts s.name != [ ]
    || fromGroups s.name != [ ];
  turn =
    s:
    if s.replicas == "all" then
      "last"
    else if s.placement.pins != [ ] then
      "first"
    else
      "then";
  turns = groupBy turn (filter depends choosing);

  # One after the other, each sees what those before it were given.
  inTurn =
    foldl'
      (
        sum: service:
        let
          is = choose sum service;
        in
        {
          load = fill sum.load is.hosts service.placement.size;
          chosen = sum.chosen // {
            ${service.name} = is;
          };
        }
      )
      {
        load = bound;
        chosen = { };
      }
      (turns.first or [ ] ++ turns."then" or [ ] ++ turns.last or [ ]);

  chosen = mapAttrs (
    name: service:
    if depends service then
      inTurn.chosen.${name}
    else
      choose {
        load = { };
        chosen = { };
      } service
  ) services;
in
{
  # service → its hosts: those that it names, of which not all need exist, or those chosen
  # for it, in order of preference
  # hosts :: Service -> [hostName]
  hosts =
    service:
    if service.replicas == null || names service then
      named service
    else
      chosen.${service.name}.hosts;

  # The hosts that fit what the placement of a service requires, and take it.
  # candidates :: Service -> [hostName]
  candidates = candidates.of;

  # The same, whether a host is drained or cordoned or not.
  # fitting :: Service -> [hostName]
  fitting = service: candidates.fitting service.placement;

  # Its candidates by what becomes of them: `free` for it, or taken by what it is `apart` from,
  # likewise `apartByGroup`, or without `capacity` left.
  # left :: Service -> { free ? [ hostName ]; … }
  left = service: chosen.${service.name}.of;

  # How much of its capacity a host needs for services that name it.
  # bound :: hostName -> Int
  bound = h: bound.${h} or 0;

  # Whom it is not to be with, on a host or in a group.
  # others :: Service -> [serviceName]
  others = service: fromHosts service.name ++ fromGroups service.name;

  # The same without cordon and drain.
  open = import ./placement.nix {
    inherit services;
    hosts = mapAttrs (
      _: h:
      h
      // {
        cordon = false;
        drain = false;
      }
    ) hosts;
  };
}
