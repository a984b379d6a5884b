# The identities under which processes of a host may act, the most specific first: { key, id, reach,
# latent, users, uids, units, workload }. `latent` contains what it reaches only while a grant is in
# force.
# Topology -> { role = { id = Instance; }; } -> Latent -> Host -> [Identity]
t: reachByRole: latent: host:
let
  inherit (builtins)
    any
    attrNames
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
      later ? { },
    }:
    let
      callers = if host.callers == { } then accounts else host.callers.${key} or accounts;
      # Most identities have accounts only.
      plain = !any (c: !isString c || isService c) callers;
    in
    rec {
      inherit key id workload;
      reach =
        if roles == [ ] then { } else foldl' (a: b: a // b) { } (map (role: reachByRole.${role}) roles);
      latent = if later == { } then later else removeAttrs later (attrNames reach);
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
    later = latent.reach u;
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
