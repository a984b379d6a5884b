# The rollout in the form of a policy: waves and budgets as lists of host names, or null if versions
# reach all hosts at once. Only hosts that receive documents over the network are in a wave, and
# empty waves are omitted.
# { clean, topology } -> Rollout | null
{ clean, topology }:
let
  inherit (builtins)
    all
    attrNames
    attrValues
    elem
    elemAt
    filter
    genList
    groupBy
    length
    sub
    ;
  names = import ../lib/names.nix;
  inherit (import ../lib) optionalAttrs;
  inherit (clean.rollout) atOnce maintenance;
  waves =
    if clean.rollout.waves == [ ] && atOnce != [ ] then
      [
        {
          tags = [ ];
          percent = null;
          rest = true;
        }
      ]
    else
      clean.rollout.waves;
  hosts = filter (h: h.deploy == "network") (attrValues topology.hosts);

  # A number from 0 to 99 that depends only on the host's name.
  share =
    host:
    let
      hash = names.hash "rollout ${host.name}";
    in
    sub hash (hash / 100 * 100);
  includes =
    wave: host:
    wave.rest
    || wave.percent != null && share host < wave.percent
    || wave.tags != [ ] && all (t: elem t host.tags) wave.tags;

  # The first wave that includes the host.
  first =
    host:
    let
      found = filter (i: includes (elemAt waves i) host) (genList (i: i) (length waves));
    in
    if found == [ ] then "none" else toString (elemAt found 0);
  byWave = groupBy first hosts;
  reached = filter (w: w != [ ]) (
    genList (i: map (h: h.name) (byWave.${toString i} or [ ])) (length waves)
  );

  # The innermost group of the host with a maintenance window.
  closest =
    host:
    let
      found = filter (g: maintenance ? ${g}) (topology.outward host.group);
    in
    if found == [ ] then "" else elemAt found (length found - 1);
  byGroup = groupBy closest hosts;
  windows = map (group: {
    inherit group;
    hosts = map (h: h.name) byGroup.${group};
    window = { inherit (maintenance.${group}) days minutes start; };
  }) (filter (g: byGroup ? ${g}) (attrNames maintenance));

  budgets = map (b: {
    inherit (b) most tags;
    hosts = map (h: h.name) (
      filter (h: all (t: elem t h.tags) b.tags) (attrValues topology.hosts)
    );
  }) atOnce;
in
if waves == [ ] then
  null
else
  {
    waves = reached;
    inherit (clean.rollout) healthy within;
  }
  // optionalAttrs (windows != [ ]) { maintenance = windows; }
  // optionalAttrs (budgets != [ ]) { inherit budgets; }
