# Roles that users may request for some hours: who may request each, and who may approve that.
# Members of a team up to a time are left out, because a grant could outlast their membership.
# { clean, users } -> { role = { most :: Int; by, approve :: [userName]; }; }
{ clean, users }:
let
  inherit (builtins)
    attrNames
    concatMap
    filter
    mapAttrs
    ;
  inherit (import ../lib) closure known only sorted;
  isRequested = name: clean.roles.${name}.request.by != [ ] || clean.roles.${name}.request.approve != [ ];
  requested = only (filter isRequested (attrNames clean.roles)) clean.roles;
  # The users of some teams, and of the teams in them.
  people =
    names:
    sorted (
      known users (
        concatMap (team: clean.teams.${team}.users) (
          closure (team: known clean.teams clean.teams.${team}.teams) (known clean.teams names)
        )
      )
    );
in
mapAttrs (_: r: {
  inherit (r.request) most;
  # A user on no host has no certificate.
  by = filter (u: users.${u}.hosts != [ ]) (people r.request.by);
  approve = filter (u: users.${u}.approvalKeys != [ ]) (people r.request.approve);
}) requested
