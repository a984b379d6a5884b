# Orders the hosts on which a service may run by the service's preference.
# { hosts, paths } -> load -> Service -> [hostName] -> [hostName]
{ hosts, paths }:
let
  inherit (builtins)
    attrValues
    concatMap
    elem
    elemAt
    filter
    foldl'
    genList
    groupBy
    hashString
    head
    length
    lessThan
    listToAttrs
    sort
    substring
    ;
  inherit (import ../lib) distinct shared toSet;

  # The smallest of several hashes, one for each unit of the host's weight. More weight moves
  # services only to that host.
  hashed =
    name: host:
    let
      of = i: hashString "sha256" "${name} ${host}${if i == 0 then "" else " ${toString i}"}";
      inherit (hosts.${host}) weight;
    in
    if weight < 2 then of 0 else head (sort lessThan (genList of weight));

  # Hosts in the order of their hashes with the service. A SHA-256 in hex has 64 digits.
  shuffle =
    name: candidates:
    map (substring 65 (-1)) (sort lessThan (map (host: "${hashed name host} ${host}") candidates));

  # Hosts by rising cost; hosts of equal cost keep their order.
  order =
    cost: candidates:
    map (h: h.host) (
      sort (a: b: a.cost < b.cost) (
        map (host: {
          inherit host;
          cost = cost host;
        }) candidates
      )
    );

  distance =
    p: host:
    let
      depth = h: shared paths.${h} paths.${host};
    in
    0 - foldl' (best: h: if depth h > best then depth h else best) 0 (filter (h: hosts ? ${h}) p.near);

  # The first host of each group, then the second of each, and so on; within a group the same for
  # the groups in it.
  even =
    depth: list:
    let
      group = h: if length paths.${h} > depth then elemAt paths.${h} depth else "";
      rank = listToAttrs (
        genList (i: {
          name = elemAt list i;
          value = i;
        }) (length list)
      );
      rounds =
        members:
        let
          inner = even (depth + 1) members;
        in
        genList (round: {
          inherit round;
          host = elemAt inner round;
        }) (length inner);
      before =
        a: b: a.round < b.round || a.round == b.round && rank.${a.host} < rank.${b.host};
    in
    if filter (h: length paths.${h} > depth) list == [ ] then
      list
    else
      map (h: h.host) (sort before (concatMap rounds (attrValues (groupBy group list))));

  # Only the first host of each group.
  single =
    list:
    let
      first = toSet (map head (attrValues (groupBy (h: hosts.${h}.group) list)));
    in
    filter (h: first ? ${h}) list;

  # The load of a host by weight. 2520 is divisible by every weight.
  filled = load: h: load.${h} or 0 * 2520 / hosts.${h}.weight;
in
load: service: candidates:
let
  p = service.placement;
  shuffled = shuffle service.name candidates;
  preferred =
    if p.strategy == "balanced" then
      order (filled load) shuffled
    else if p.strategy == "locality" then
      order (distance p) shuffled
    else
      shuffled;
  pinnedFirst =
    list:
    let
      pins = filter (h: elem h list) (distinct p.pins);
    in
    if p.pins == [ ] then list else pins ++ filter (h: !elem h pins) list;
  all = pinnedFirst preferred;
in
pinnedFirst (
  if p.spread == "even" then
    even 0 all
  else if p.spread == "one-per-group" then
    single all
  else
    all
)
