# A host has the users of its group too.
{ base, merge, ... }:
merge base {
  users.ben.roles = [ "reader" ];
  hostGroups.eu.users = [ "ben" ];
  hosts.beta.group = "eu";
}
