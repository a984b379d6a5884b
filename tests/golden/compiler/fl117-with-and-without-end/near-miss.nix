# A team or a group of hosts may give the role without an end, which then applies.
{ base, merge, ... }:
merge base {
  users.ann.roles = [ ];
  users.ann.until.reader = "2027-01-31";
  teams.ops = {
    users = [ "ann" ];
    roles = [ "reader" ];
  };
  teams.night = {
    usersUntil.ann = "2027-01-31";
    roles = [ "reader" ];
  };
  hosts.alpha = {
    group = "eu";
    until.reader = "2027-01-31";
  };
  hostGroups.eu.roles = [ "reader" ];
}
