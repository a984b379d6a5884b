# Of a user, a team and a service; and roles that are not there, or not given.
{ base, merge, ... }:
merge base {
  users.ann.until = {
    reader = "2027-01-31";
    readers = "2027-01-31";
    node = "2027-01-31";
  };
  teams.ops = {
    users = [ "ann" ];
    roles = [ "reader" ];
    until.reader = "2027-01-31";
  };
  services.wiki.roles = [ "reader" ];
  services.wiki.until.reader = "2027-01-31";
}
