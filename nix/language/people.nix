# The records of users and teams.
let
  inherit (import ./types)
    attrsOf
    listOf
    of
    record
    ;
  inherit (import ./formats) date personKey strings;
  limits = import ./limits.nix;
in
{
  user = record "a user" {
    roles = of "Roles of the user." strings;
    until = of "Roles up to a time: `{ chief = \"2027-01-31\"; }`. Hosts then end them by themselves, open connections included." (attrsOf date);
    approvalKeys = of "SSH public keys with which the user approves requests for a role (`roles.<name>.request`). They can be keys of FIDO security keys (`sk-ssh-ed25519@openssh.com`)." (
      listOf personKey
    );
    limits = limits 8192 "Limits of the user, at each host that publishes a service which the user reaches.";
  };

  team = record "a team" {
    users = of "Users in the team." strings;
    usersUntil = of "Users in the team up to a time: `{ ben = \"2027-01-31\"; }`. Hosts then end what the team gives." (attrsOf date);
    teams = of "Teams whose people are in this one, too." strings;
    roles = of "Roles of the people in the team." strings;
    until = of "Roles up to a time, as for users." (attrsOf date);
  };
}
