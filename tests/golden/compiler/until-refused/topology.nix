# Wrong ends, and several holders whose ends are compared: each is a fault at its place, and so is a
# wrong serial, with which ends are compared too.
{ base, merge, ... }:
merge base {
  serial = -1;
  users.ann.until.chief = "friday";
  teams.night = {
    users = [ "ann" ];
    usersUntil.ben = "2027-02-30";
    until.chief = "2027-13-01";
  };
  teams.day = {
    users = [ "ann" ];
    until.chief = "2027-01-31";
  };
  users.ben = { };
  hosts.beta = {
    group = "eu";
    users = [
      "ann"
      "ben"
    ];
    until.chief = 1;
  };
  hostGroups.eu.until = {
    chief = "2027-02-29";
    reader = "never";
  };
  roles.chief.services = [ "wiki" ];
}
