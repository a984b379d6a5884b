# Ends for a user, a team, its members, a host, a group of hosts and a service, and of unknown roles
# or roles that they do not have.
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
    usersUntil = {
      ann = "2027-01-31";
      anne = "2027-01-31";
    };
  };
  hosts.alpha = {
    roles = [ "reader" ];
    until.reader = "2027-01-31";
  };
  hosts.beta = {
    group = "eu";
    until.readers = "2027-01-31";
  };
  hostGroups.eu = {
    roles = [ "reader" ];
    until.reader = "2027-01-31";
    until.operator = "2027-01-31";
  };
  services.wiki.roles = [ "reader" ];
  services.wiki.until.reader = "2027-01-31";
}
