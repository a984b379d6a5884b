# Faults of requests for roles: of the roles that can be requested, and of the people who request and
# approve.
{
  access,
  clean,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    groupBy
    head
    isString
    length
    ;
  inherit (lib)
    attribute
    fault
    faultIf
    show
    unknown
    when
    ;
  inherit (import ../lib) isInvalid;
  names = import ../lib/names.nix;
  inherit (import ../resolve/reserved.nix) leads;

  foreign = concatMap (f: concatMap (s: s.roles) f.services) t.abroad;
  operators = access.allow.${names.control} or [ ];

  owners = groupBy (o: o.key) (
    concatMap (
      user: map (key: { inherit key user; }) (filter (k: !isInvalid k) clean.users.${user}.approvalKeys)
    ) (if any (u: u.approvalKeys != [ ]) (attrValues clean.users) then attrNames clean.users else [ ])
  );
in
{
  # role :: String -> Role -> [Fault]
  role =
    n: r:
    let
      place = "roles.${n}.request";
      has = t.requests.${n};
      bad = id: problem: value: remedy: [
        (fault {
          inherit
            id
            place
            problem
            value
            remedy
            ;
        })
      ];
      some = list: concatStringsSep ", " list;
      teamsKnown = filter (team: clean.teams ? ${team}) (r.request.by ++ r.request.approve);
      complete = length teamsKnown == length (r.request.by ++ r.request.approve);
      alone = filter (u: !any (a: a != u) has.approve) has.by;
      outside =
        if clean.providers.config.hosts == [ ] then
          [ ]
        else
          filter (u: !elem t.users.${u}.id operators) (has.by ++ filter (u: !elem u has.by) has.approve);
      logins = concatMap (
        id: map (l: "${l.account} at ${names.short id}") (
          filter (l: l.role == n && !(access.byRole.${n} ? ${id})) access.logins.at.${id}
        )
      ) (attrNames access.logins.at);
    in
    unknown "FL096" "team" clean.teams "${place}.by" r.request.by
    ++ unknown "FL096" "team" clean.teams "${place}.approve" r.request.approve
    ++ when (complete && has.by == [ ]) (
      bad "FL194" "nobody who acts on a host is in the teams" (
        if r.request.by == [ ] then "none" else some r.request.by
      ) "name a team with users in ${place}.by"
    )
    ++ when (complete && has.by != [ ] && alone != [ ]) (
      bad "FL194" "nobody else with a key may approve what these request:" (some alone)
        "write users.<name>.approvalKeys of another user in ${place}.approve"
    )
    ++ (
      if
        elem n [
          "node"
          "operator"
        ]
      then
        bad "FL196" "a reserved role cannot be requested:" (show n) "request a role of your own"
      else if leads t.roles.${n} then
        bad "FL196" "a grant gives no access to providers, and the role leads to" (
          show names.control
        ) "take control-plane and nix-cache out of the role, or the request"
      else if elem n foreign then
        bad "FL196" "other clusters learn of no grant, and the role leads to" "services of another cluster"
          "take them out of the role, or the request"
      else if logins != [ ] then
        bad "FL196" "the role does not reach where it permits to log in:" (some logins)
          "name the service in roles.${n}.services, or take the login out"
      else
        [ ]
    )
    ++ when (complete && clean.providers.config.hosts == [ ]) (
      bad "FL197" "grants come from providers of documents, and there is" "no host in providers.config"
        "write providers.config.hosts, or take the request out"
    )
    ++ when (outside != [ ]) (
      bad "FL197" "these request or approve, and do not reach ${names.control}:" (some outside)
        "give them a role with serviceGroups = [ \"control-plane\" ];"
    );

  # user :: String -> User -> [Fault]
  user =
    n: u:
    concatMap (
      key:
      let
        others = filter (o: o != n) (map (o: o.user) owners.${key});
      in
      faultIf (others != [ ]) {
        id = "FL195";
        place = "users.${n}.approvalKeys";
        problem = "the key is also that of";
        value = "users.${attribute (head others)}";
        remedy = "list the key of each user once";
      }
    ) (filter (key: isString key && owners ? ${key}) u.approvalKeys);
}
