# Access that users have only while a grant for a role is in force (`roles.<name>.request`).
# Documents contain it beside the access that is always there.
# Topology -> { role = { id = Instance; }; } -> Logins -> { … }
t: reachByRole: logins:
let
  inherit (builtins)
    attrNames
    concatMap
    elem
    filter
    foldl'
    listToAttrs
    mapAttrs
    sort
    ;
  inherit (import ../lib) only optionalAttrs sorted;

  # A user who holds the role without an end needs no grant.
  lacks = role: u: !elem role t.users.${u}.roles || t.users.${u}.until ? ${role};
  requesters = mapAttrs (role: r: filter (lacks role) r.by) t.requests;
  rolesOf = u: filter (role: elem u requesters.${role}) (attrNames t.requests);

  before = a: b: if a.id == b.id then a.role < b.role else a.id < b.id;
in
{
  # The roles that a user may request.
  # rolesOf :: userName -> [roleName]
  rolesOf = if t.requests == { } then _: [ ] else rolesOf;

  # The instances that a user reaches only while a grant is in force.
  # reach :: userName -> { id = Instance; }
  reach =
    if t.requests == { } then
      _: { }
    else
      u: foldl' (all: role: all // reachByRole.${role}) { } (rolesOf u);

  # The attribute `latent` of an entry of `publish`: who may connect to an instance while a grant is
  # in force. The first argument contains the roles that lead to the instance.
  # to :: [roleName] -> instanceId -> { latent :: [{ id, role, logins? }] } | { }
  to =
    roles: id:
    let
      entries = concatMap (
        role:
        let
          accounts = map (l: l.account) (filter (l: l.role == role) (logins.at.${id} or [ ]));
        in
        map (
          u:
          {
            inherit (t.users.${u}) id;
            inherit role;
          }
          // optionalAttrs (accounts != [ ]) { logins = sorted accounts; }
        ) requesters.${role}
      ) (filter (role: t.requests ? ${role}) roles);
    in
    optionalAttrs (entries != [ ]) { latent = sort before entries; };

  # The IDs that may log in over SSH while a grant is in force.
  # users :: { id = null; }
  users = listToAttrs (
    concatMap (
      role:
      map (u: {
        name = t.users.${u}.id;
        value = null;
      }) requesters.${role}
    ) (filter (role: t.roles.${role}.logins != { }) (attrNames t.requests))
  );

  # `requests` of a manifest: how a host verifies grants for some roles.
  # rules :: [roleName] -> { role = { most, approvers }; }
  rules =
    roles:
    mapAttrs (_: r: {
      inherit (r) most;
      approvers = map (u: {
        inherit (t.users.${u}) id;
        keys = t.users.${u}.approvalKeys;
      }) r.approve;
    }) (only roles t.requests);

  # The IDs of the users who may request a role.
  # requesters :: roleName -> [id]
  requesters = role: map (u: t.users.${u}.id) requesters.${role};
}
