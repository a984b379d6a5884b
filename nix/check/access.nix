# Faults of each user, role and group.
{
  clean,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    any
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    mapAttrs
    ;
  inherit (lib)
    fault
    group
    reserved
    role
    service
    when
    ;

  inherit (import ../lib.nix) toSet;
  inherit (import ../reserved.nix) leads;

  # Roles that lead to services of foreign trust domains.
  foreign = toSet (
    concatMap (f: concatMap (s: s.roles) (attrValues f.services)) (attrValues clean.federated)
  );

  # A role with a reference to nothing was reported for that.
  reaches =
    n: r:
    let
      members = r.services ++ concatMap (g: t.serviceGroups.${g} or [ ]) r.serviceGroups;
      dangling = any (s: !t.services ? ${s}) members || any (g: !t.serviceGroups ? ${g}) r.serviceGroups;
      hidden = filter (s: !t.services.${s}.published) members;
    in
    when
      (
        !any (s: t.services.${s}.published or false) members
        && !elem n [
          "node"
          "operator"
        ]
        && !dangling
        && !foreign ? ${n}
        && (clean.providers.config.hosts == [ ] || !leads r)
      )
      [
        (fault {
          id = "FL030";
          place = "roles.${n}";
          problem = "the role reaches";
          value = "nothing";
          remedy =
            if hidden == [ ] then
              "name a service in roles.${n}.services or a group with members in roles.${n}.serviceGroups"
            else
              "set visibility = \"cluster\" for ${concatStringsSep ", " hidden}, which visibility = \"host\" hides";
        })
      ];
in
{
  users = mapAttrs (
    n: u:
    role "users.${n}.roles" u.roles
    ++ when (elem "node" u.roles) [ (reserved "users.${n}.roles" "node") ]
  ) clean.users;

  roles = mapAttrs (
    n: r:
    service "roles.${n}.services" r.services
    ++ group "roles.${n}.serviceGroups" r.serviceGroups
    ++ reaches n r
  ) clean.roles;

  serviceGroups = mapAttrs (n: service "serviceGroups.${n}") clean.serviceGroups;
}
