# Whom a host may act under, the most particular first: { key, id, reach, users, uids, units,
# workload }.
# Topology -> { role = { id = Instance; }; } -> Host -> [Identity]
t: reachByRole: host:
let
  inherit (builtins)
    concatMap
    filter
    foldl'
    isInt
    isString
    map
    ;
  inherit (import ./formats.nix) isService;

  as =
    key: id: roles: accounts: workload:
    let
      callers = host.callers.${key} or accounts;
    in
    {
      inherit key id workload;
      reach =
        if roles == [ ] then { } else foldl' (a: b: a // b) { } (map (role: reachByRole.${role}) roles);
      users = filter (c: isString c && !isService c) callers;
      units = filter isService callers;
      uids = filter isInt callers;
    };
in
concatMap (
  s:
  map (id: as "service/${s.name}" id s.roles (filter (a: a != "") [ s.user ]) s.workloadApi) (
    s.idsOn host.name
  )
) (filter (s: s.acts) host.running)
++ map (u: as "user/${u}" t.users.${u}.id t.users.${u}.roles [ u ] false) host.users
++ [ (as "node" host.id host.roles [ "root" ] false) ]
