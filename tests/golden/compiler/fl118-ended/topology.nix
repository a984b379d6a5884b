# At the end, and after it. If a date is wrong, only its form is a fault.
{ base, merge, ... }:
merge base {
  serial = 1801353600;
  users.ann.until.other = "2027-01-31";
  teams.ops = {
    users = [ "ann" ];
    usersUntil.bob = "2027-01-31";
    until.other = "2026-12-31T23:59Z";
  };
  users.bob.roles = [ "reader" ];
  hosts.beta.users = [
    "ann"
    "bob"
  ];
  hosts.alpha.group = "eu";
  hosts.alpha.until.other = "2027-01-31";
  hostGroups.eu.until.other = "2027-01-31";
  services.wiki.until.other = "2027-02-29";
  roles.other.services = [ "wiki" ];
}
