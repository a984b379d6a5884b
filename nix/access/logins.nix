# The accounts as which users may log in over SSH, from the roles that they hold.
# Topology -> holders -> { to, at, granted, users }
t: holders:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    elem
    filter
    foldl'
    groupBy
    head
    listToAttrs
    mapAttrs
    ;
  inherit (import ../lib) optionalAttrs sorted toSet;

  roles = filter (r: r.logins != { }) (
    attrValues (
      mapAttrs (name: r: {
        inherit name;
        inherit (r) logins;
      }) t.roles
    )
  );
  idsOf =
    written:
    if t.services ? ${written} then
      map (i: i.name) t.services.${written}.instances
    else
      t.parts.${written}.ids or [ ];

  # ID of an instance of a service → the accounts there, each with a role that permits it
  permitted = groupBy (l: l.id) (
    concatMap (
      role:
      concatMap (
        written:
        concatMap (
          id:
          map (account: {
            inherit account id;
            role = role.name;
          }) role.logins.${written}
        ) (idsOf written)
      ) (attrNames role.logins)
    ) roles
  );

  users = listToAttrs (
    map (u: {
      name = u.id;
      value = u;
    }) (attrValues t.users)
  );

  # The latest end of the roles of a user that permit a login; none if one of them has no end.
  ending =
    user: roles:
    if any (role: !user.until ? ${role}) roles then
      { }
    else
      {
        until = foldl' (last: role: if user.until.${role} > last then user.until.${role} else last) 0 roles;
      };
in
{
  # The logins of an identity at an instance of a service, as an attribute of its entry in `allow`.
  # to :: instanceId -> id -> { logins :: [{ account, until? }] } | { }
  to =
    instance: id:
    let
      mine = filter (l: elem l.role users.${id}.roles) permitted.${instance};
    in
    optionalAttrs (permitted ? ${instance} && users ? ${id} && mine != [ ]) {
      logins = map (
        same: { inherit (head same) account; } // ending users.${id} (map (l: l.role) same)
      ) (attrValues (groupBy (l: l.account) mine));
    };

  # The instances of services at which somebody may log in.
  # at :: { instanceId = [{ id, account, role }]; }
  at = permitted;

  # The instances that a name in `logins` stands for.
  # idsOf :: String -> [instanceId]
  inherit idsOf;

  # Reports whether somebody may log in at a service on a host.
  # allows :: Service -> hostName -> Bool
  allows = s: host: any (id: permitted ? ${id}) (s.idsOn host);

  # role → the accounts to which it permits logins, by ID of the instance
  # granted :: { role = { instanceId = [account]; }; }
  granted = mapAttrs (
    _: of: mapAttrs (_: same: sorted (map (l: l.account) same)) (groupBy (l: l.id) of)
  ) (groupBy (l: l.role) (concatLists (attrValues permitted)));

  # The IDs that hold a role with logins.
  # users :: { id = null; }
  users = toSet (concatMap (r: holders.${r.name}) roles);
}
