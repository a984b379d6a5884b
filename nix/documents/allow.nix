# The allow list of an entry of `publish`: who may connect, and as which accounts they may log in.
# Access -> service -> id -> portKey -> [Allow]
access:
let
  inherit (builtins)
    head
    mapAttrs
    tail
    toJSON
    ;

  # Lists for the same roles are shared, because many services are reached by the same roles.
  entries = roles: map (id: { inherit id; } // access.ending roles id);
  alone = mapAttrs (role: entries [ role ]) access.holders;
  several = mapAttrs (_: of: entries of.roles of.ids) access.several;
  allow =
    roles:
    if roles == [ ] then
      [ ]
    else if tail roles == [ ] then
      alone.${head roles}
    else
      several.${toJSON roles};
  allowTo =
    service: key:
    if access.alike service then
      allow (access.leading.${service} or [ ])
    else
      entries (access.leadingTo service key) (access.allowTo service key);

  # The list with the accounts as which callers may log in.
  withLogins =
    id: if access.logins.at ? ${id} then map (a: a // access.logins.to id a.id) else (list: list);
in
service: id: portKey:
withLogins id (allowTo service (id + portKey))
