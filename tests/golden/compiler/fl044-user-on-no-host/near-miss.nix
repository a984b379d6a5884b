# A host has users from its group too.
{ base, merge, ... }:
merge base {
  users.ben.roles = [ "reader" ];
  hostGroups.eu.users = [ "ben" ];
  hosts.beta.group = "eu";
}
