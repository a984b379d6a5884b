# Roles, teams and users that reach nothing, or not all that they name.
{
  access,
  clean,
  shapes,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    any
    attrValues
    concatMap
    elem
    filter
    intersectAttrs
    ;
  inherit (import ../lib) invert toSet;
  inherit (lib)
    fault
    faultIf
    show
    when
    ;

  # A role that reaches nothing at all is an error, reported elsewhere.
  hidden =
    n: r:
    let
      members = map (n: t.parts.${n}.service or n) (
        r.services ++ concatMap (g: t.serviceGroups.${g} or [ ]) r.serviceGroups
      );
      named = attrValues (intersectAttrs (toSet members) t.services);
    in
    when
      (
        t.hidden != [ ]
        && (
          any (s: s.published) named
          || elem n [
            "node"
            "operator"
          ]
        )
      )
      (
        map (
          s:
          fault {
            id = "FL048";
            place = "roles.${n}";
            problem = "it names a service that nobody reaches, with visibility = \"host\":";
            value = "service ${s.name}";
            remedy = "set services.${s.name}.visibility = \"cluster\";, or take it out of the role";
          }
        ) (filter (s: !s.published) named)
      );

  idle =
    n:
    map (
      name:
      fault {
        id = "FL116";
        place = "roles.${n}.except";
        problem = "the role does not lead there anyway:";
        value = show name;
        remedy = "take it out";
      }
    ) (filter (name: t.services ? ${name} || t.parts.${name}.hosts or [ ] != [ ]) (access.idle n));

  team =
    n: of:
    faultIf
      (
        shapes.teams.${n} == [ ]
        && (of.roles == [ ] && of.until == { } && !above ? ${n} || nobody of)
      )
      {
        id = "FL098";
        place = "teams.${n}";
        problem = "the team gives nobody access, having";
        value = if nobody of then "no people" else "no role";
        remedy = "write teams.${n}.users and roles, or take the team out";
      };
  nobody = of: of.users ++ of.teams == [ ] && of.usersUntil == { };
  above = invert (of: of.teams) (attrValues clean.teams);

  user =
    n: u:
    when (shapes.users.${n} == [ ]) (
      faultIf (u.roles ++ t.users.${n}.roles == [ ]) {
        id = "FL040";
        place = "users.${n}";
        problem = "the user may reach nothing, having";
        value = "no role";
        remedy = "write users.${n}.roles = [ \"…\" ];, put the user into a team that has one, or take the user out";
      }
      ++ faultIf (u.roles ++ t.users.${n}.roles != [ ] && t.users.${n}.hosts == [ ]) {
        id = "FL044";
        place = "users.${n}";
        problem = "the user can act on";
        value = "no host";
        remedy = "name the user in the users of a host, such as a laptop, or take the user out";
      }
    );
in
{
  inherit team user;
  role = n: r: hidden n r ++ idle n;
}
