# The parts of the paths of all hosts that each relay has.
# { t, path, pathsOf, vertex } -> { parts, routes }
{
  t,
  path,
  pathsOf,
  vertex,
}:
let
  inherit (builtins)
    attrValues
    concatMap
    groupBy
    head
    tail
    ;
  inherit (import ../lib) optionalAttrs sorted;

  # label → the nodes whose manifests have the path, sorted, each with the path
  used = concatMap (
    h:
    map (p: {
      inherit (p) label;
      inherit p;
      from = h.id;
    }) (pathsOf h.name)
  ) (attrValues t.hosts);
  callers = groupBy (u: u.label) used;
  # relay → its parts of these paths
  parts = groupBy (r: r.relay) (
    concatMap (
      same:
      let
        inherit (head same) p;
        relay = head p.by;
        rest = path (tail p.by) p.target;
        from = map (u: u.from) same;
      in
      if tail p.by == [ ] then
        [
          {
            inherit relay from;
            inherit (p) label;
            to = t.hosts.${p.target}.id;
          }
        ]
      else
        [
          {
            inherit relay from;
            inherit (p) label;
            to = vertex (head rest.by);
            next = rest.label;
            after = head rest.by;
          }
          {
            relay = head rest.by;
            inherit (rest) label;
            to = t.hosts.${p.target}.id;
            from = [ (vertex relay) ];
          }
        ]
    ) (attrValues callers)
  );
in
{
  # relay → its parts of these paths, with the relay that it calls as `after`
  inherit parts;

  # The routes in a relay's manifest.
  # routes :: hostName -> [Route]
  routes =
    name:
    map (
      same:
      removeAttrs (head same) [
        "after"
        "relay"
      ]
      // optionalAttrs (tail same != [ ]) { from = sorted (concatMap (r: r.from) same); }
    ) (attrValues (groupBy (r: r.label) (parts.${name} or [ ])));
}
