# In which order a service prefers the hosts that it may run on.
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

  # The least of as many hashes as the host weighs: more weight moves things to it alone.
  hashed =
    name: host:
    let
      of = i: hashString "sha256" "${name} ${host}${if i == 0 then "" else " ${toString i}"}";
      inherit (hosts.${host}) weight;
    in
    if weight < 2 then of 0 else head (sort lessThan (genList of weight));

  # Hosts in the order of their hashes with the service; a SHA-256 has 64 digits.
  shuffle =
    name: candidates:
    map (substring 65 (-1)) (sort lessThan (map (host: "${hashed name host} ${host}") candidates));

  # Hosts from least to most, equals as they come.
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

  # The first of each group, then the second of each, and so on; within a group likewise by the
  # groups in it.
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

  # The first of each group alone.
  single =
    list:
    let
      first = toSet (map head (attrValues (groupBy (h: hosts.${h}.group) list)));
    in
    filter (h: first ? ${h}) list;

  # What counts of a host's load: 2520 can be divided by every weight.
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
