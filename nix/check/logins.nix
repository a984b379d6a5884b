# Faults of logins over SSH: of the roles that permit them, and of the services where people log in.
{
  access,
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
    head
    match
    ;
  inherit (lib)
    attribute
    fault
    faultIf
    part
    show
    when
    ;
  split = (import ../resolve/part.nix).split;

  serviceOf = written: if t.services ? ${written} then written else (split written).service or "";
  at = n: written: "roles.${n}.logins.${attribute written}";

  # Only the sshd of the host itself asks who may log in.
  isOfHost = s: match "127\\.[0-9.]+:[0-9]+" s.upstream != null;

  # The services of a host where somebody may log in.
  withLogins =
    h: filter (s: s.protocol == "ssh" && access.logins.allows s h) t.hosts.${h}.running;
in
{
  # role :: String -> Role -> [Fault]
  role =
    n: r:
    part "roles.${n}.logins" (attrNames r.logins)
    ++ concatMap (
      written:
      let
        s = t.services.${serviceOf written};
        wrong = problem: value: remedy: [
          (fault {
            id = "FL180";
            place = at n written;
            inherit problem value remedy;
          })
        ];
      in
      (
        if !t.services ? ${serviceOf written} then
          [ ]
        else if s.protocol != "ssh" then
          wrong "people log in at services with protocol = \"ssh\" only, and that of ${s.name} is"
            (if s.several then "ports" else show s.protocol)
            "write services.${s.name}.protocol = \"ssh\";, or take the login out"
        else if !isOfHost s then
          wrong "only the sshd of the host itself asks who may log in, and the upstream of ${s.name} is"
            (show s.upstream)
            "take services.${s.name}.upstream out, or the login"
        else
          [ ]
      )
      ++ faultIf (elem "root" r.logins.${written} && !r.privileged) {
        id = "FL181";
        place = at n written;
        problem = "a role that is not privileged permits to log in as";
        value = show "root";
        remedy = "write roles.${n}.privileged = true;, or take it out";
      }
    ) (attrNames r.logins);

  # service :: String -> [Fault]
  service =
    n:
    let
      place = "services.${n}";
      shared = concatMap (
        h:
        let
          others = filter (o: o.name != n) (withLogins h);
        in
        when (any (o: o.name == n) (withLogins h) && others != [ ]) [
          {
            host = h;
            other = (head others).name;
          }
        ]
      ) t.services.${n}.hosts;
      first = head shared;
    in
    faultIf (shared != [ ]) {
      id = "FL182";
      inherit place;
      problem = "logins at two services of one host cannot be told apart: on ${first.host} there is also";
      value = "service ${first.other}";
      remedy = "keep logins at one of the two";
    };

  # Users who may log in, and do not reach the service.
  # warnings :: String -> Role -> [Fault]
  warnings =
    n: r:
    concatMap (
      written:
      let
        ids =
          if t.services.${serviceOf written}.protocol or "" != "ssh" then
            [ ]
          else
            access.logins.idsOf written;
        holders = filter (u: u.hosts != [ ] && elem n u.roles) (attrValues t.users);
        reaches = u: any (id: any (role: access.byRole.${role} ? ${id}) u.roles) ids;
        without = filter (u: !reaches u) holders;
      in
      faultIf (ids != [ ] && without != [ ]) {
        id = "FL183";
        place = at n written;
        problem = "these users may log in, and do not reach the service:";
        value = concatStringsSep ", " (map (u: (import ../lib/names.nix).short u.id) without);
        remedy = "write ${show written} in roles.${n}.services, or in another role of theirs";
      }
    ) (attrNames r.logins);
}
