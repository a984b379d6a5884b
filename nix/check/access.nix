# Faults of each user, role and group.
{
  access,
  clean,
  t,
  lib,
  ...
}@arguments:
let
  inherit (builtins)
    any
    concatMap
    concatStringsSep
    elem
    filter
    mapAttrs
    ;
  inherit (lib)
    fault
    faultIf
    group
    part
    reserved
    role
    show
    unknown
    user
    when
    ;

  ends = import ./until.nix arguments;
  logins = import ./logins.nix arguments;
  requests = import ./requests.nix arguments;
  until = ends.faults;
  inherit (import ../lib) closure known toSet;
  inherit (import ../resolve/reserved.nix) leads;

  # Users, roles or groups that contain themselves through others of their sort.
  circle =
    kind: attribute: all: n:
    let
      next = m: known all all.${m}.${attribute};
      inside = closure next (next n);
    in
    faultIf (elem n inside) {
      id = "FL097";
      place = "${kind}.${n}.${attribute}";
      problem = "it contains itself, by way of";
      value = concatStringsSep ", " (filter (m: elem n all.${m}.${attribute}) inside);
      remedy = if elem n all.${n}.${attribute} then "take it out of itself" else "take one out of the other";
    };

  # Roles that lead to services of other clusters.
  foreign = toSet (concatMap (f: concatMap (s: s.roles) f.services) t.abroad);

  # Roles without services. A role with an unknown reference has been reported for that.
  reaches =
    n: r:
    let
      has = t.roles.${n};
      members = access.members.${n};
      named = has.services ++ concatMap (g: t.serviceGroups.${g} or [ ]) has.serviceGroups;
      dangling =
        any (s: !t.services ? ${s} && t.parts.${s}.hosts or [ ] == [ ]) (named ++ has.except)
        || any (g: !t.serviceGroups ? ${g}) has.serviceGroups
        || any (o: o == n || !t.roles ? ${o}) r.roles;
      hidden = filter (s: !(t.services.${s}.published or true)) named;
    in
    faultIf
      (
        !any (s: t.services.${s}.published or false) members
        && !elem n [
          "node"
          "operator"
        ]
        && !dangling
        && !foreign ? ${n}
        && (clean.providers.config.hosts == [ ] || !leads has)
      )
      {
        id = "FL030";
        place = "roles.${n}";
        problem = "the role reaches";
        value = "nothing";
        remedy =
          if any (s: t.services.${s}.published or false) named then
            "take something out of roles.${n}.except, or the role"
          else if hidden == [ ] then
            "name a service in roles.${n}.services or a group with members in roles.${n}.serviceGroups"
          else
            "set visibility = \"cluster\" for ${concatStringsSep ", " hidden}, which visibility = \"host\" hides";
      };
in
{
  users = mapAttrs (
    n: u:
    role "users.${n}.roles" u.roles
    ++ when (elem "node" u.roles) [ (reserved "users.${n}.roles" "node") ]
    ++ until "users.${n}" u
    ++ when (u.approvalKeys != [ ]) (requests.user n u)
  ) clean.users;

  teams = mapAttrs (
    n: of:
    user "teams.${n}.users" of.users
    ++ unknown "FL096" "team" clean.teams "teams.${n}.teams" of.teams
    ++ circle "teams" "teams" clean.teams n
    ++ role "teams.${n}.roles" of.roles
    ++ when (elem "node" of.roles) [ (reserved "teams.${n}.roles" "node") ]
    ++ until "teams.${n}" of
    ++ ends.members "teams.${n}" of
  ) clean.teams;

  roles = mapAttrs (
    n: r:
    part "roles.${n}.services" r.services
    ++ part "roles.${n}.except" r.except
    ++ map (
      other:
      fault {
        id = "FL137";
        place = "roles.${n}.except";
        problem = "a service of another cluster is nobody's exception:";
        value = show other;
        remedy = "name it in roles that lead to it alone, and take this out";
      }
    ) (filter (other: t.elsewhere ? ${other}) r.except)
    ++ group "roles.${n}.serviceGroups" r.serviceGroups
    ++ role "roles.${n}.roles" r.roles
    ++ when (elem "node" r.roles) [ (reserved "roles.${n}.roles" "node") ]
    ++ circle "roles" "roles" clean.roles n
    ++ (if r.logins == { } then reaches n r else logins.role n r)
    ++ when (t.requests ? ${n}) (requests.role n r)
  ) clean.roles;

  serviceGroups = mapAttrs (n: part "serviceGroups.${n}") clean.serviceGroups;
}
