# Chooses the hosts of each service. A service runs on the hosts that it names. For a service with a
# number of replicas, hosts are chosen by a strategy. A service with "all" runs on all suitable
# hosts. candidates.nix finds the suitable hosts, and preference.nix orders them. The choice depends
# only on the topology, so a plan shows each move of a service before it happens.
#
# The strategies are:
#
#   minimize-movement  rendezvous hashing: an added host takes only its share, and a removed host
#                      gives away only its own services
#   balanced           the hosts that run the fewest services so far; services are placed in the
#                      order of their names
#   locality           the hosts whose group shares the most levels with those in `near`
#
# If the placement of a service depends on that of others (`balanced`, `apart`, `capacity`),
# services are placed one after the other. Services with pins come first, and services on "all" come
# last.
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

  # Services that a service must be apart from: those that it names, and those that name it.
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

  # The candidates of a service by whether earlier services leave them free.
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

  # Places services one after the other. Each sees the placements before it.
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
  # service → its hosts: the named ones, which may not exist, or the chosen ones in order of
  # preference
  # hosts :: Service -> [hostName]
  hosts =
    service:
    if service.replicas == null || names service then
      named service
    else
      chosen.${service.name}.hosts;

  # The hosts that fit the requirements of a service and take it.
  # candidates :: Service -> [hostName]
  candidates = candidates.of;

  # The hosts that fit, with or without a drain or cordon.
  # fitting :: Service -> [hostName]
  fitting = service: candidates.fitting service.placement;

  # The candidates of a service by result: `free`, or excluded by a service on the same host
  # (`apart`) or in the same group (`apartByGroup`), or by `capacity`.
  # left :: Service -> { free ? [ hostName ]; … }
  left = service: chosen.${service.name}.of;

  # The capacity that services with named hosts use on a host.
  # bound :: hostName -> Int
  bound = h: bound.${h} or 0;

  # The services that must not be on the same host or in the same group as a service.
  # others :: Service -> [serviceName]
  others = service: fromHosts service.name ++ fromGroups service.name;

  # The placement without cordon and drain.
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
