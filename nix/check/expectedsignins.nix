# Faults of people of a group who do not, or do, sign in to a service. `expected` is
# expectednames.nix.
# { clean, expected, lib, t, untrue, … } -> { admitted, refused }
{
  clean,
  expected,
  lib,
  t,
  untrue,
  ...
}:
let
  inherit (builtins) elem toJSON;
  inherit (expected) reserved serviceOf;
  inherit (lib) attribute when;

  # The sign-in of a service, null for one to which nobody signs in.
  signIn =
    n:
    let
      s = clean.services.${serviceOf n} or null;
    in
    if s == null || s.sso.mode == "none" then null else s.sso;
  allows = group: sso: sso.allowedGroups == [ ] || elem group sso.allowedGroups;
  groupsOf = n: "services.${attribute (serviceOf n)}.sso.allowedGroups";
in
{
  # admitted, refused :: place -> group -> service -> [Fault]
  admitted =
    place: group: n:
    let
      sso = signIn n;
    in
    if sso == null then
      # An unknown name has been reported.
      when (clean.services ? ${serviceOf n} || reserved ? ${n} || t.elsewhere ? ${n}) (
        untrue place n "a group reaches services by their sign-ins, and none leads to" "name a service with sso.mode = \"gate\"; or \"oidc\";, or test users instead of a group"
      )
    else
      when (!allows group sso) (
        untrue place n "people in group ${group} may not sign in to" "add ${toJSON group} to ${groupsOf n}, or take it out of the expectation"
      );
  refused =
    place: group: n:
    let
      sso = signIn n;
    in
    when (sso != null && allows group sso) (
      untrue place n "people in group ${group} may sign in to" (
        if sso.allowedGroups == [ ] then
          "write ${groupsOf n} = [ \"…\" ]; because without it everybody may"
        else
          "take ${toJSON group} out of ${groupsOf n}"
      )
    );
}
