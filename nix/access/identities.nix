# The identities under which processes of a host may act, the most specific first: { key, id, reach,
# users, uids, units, workload }.
# Topology -> { role = { id = Instance; }; } -> Host -> [Identity]
t: reachByRole: host:
let
  inherit (builtins)
    any
    concatMap
    filter
    foldl'
    isInt
    isString
    ;
  inherit (import ../language/formats) isService;

  as =
    {
      key,
      id,
      roles,
      accounts,
      workload,
    }:
    let
      callers = if host.callers == { } then accounts else host.callers.${key} or accounts;
      # Most identities have accounts only.
      plain = !any (c: !isString c || isService c) callers;
    in
    {
      inherit key id workload;
      reach =
        if roles == [ ] then { } else foldl' (a: b: a // b) { } (map (role: reachByRole.${role}) roles);
      users = if plain then callers else filter (c: isString c && !isService c) callers;
      units = if plain then [ ] else filter isService callers;
      uids = if plain then [ ] else filter isInt callers;
    };
in
concatMap (
  s:
  map (
    id:
    as {
      key = "service/${s.name}";
      inherit id;
      inherit (s) roles;
      accounts = if s.user == "" then [ ] else [ s.user ];
      workload = s.workloadApi;
    }
  ) (s.idsOn host.name)
) (filter (s: s.acts) host.running)
++ map (
  u:
  as {
    key = "user/${u}";
    inherit (t.users.${u}) id roles;
    accounts = [ u ];
    workload = false;
  }
) host.users
++ [
  (as {
    key = "node";
    inherit (host) id roles;
    accounts = [ "root" ];
    workload = false;
  })
]
