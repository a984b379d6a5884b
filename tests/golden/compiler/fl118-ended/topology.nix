# On the day, and before; of a date that is none the form is the fault.
{ base, merge, ... }:
merge base {
  serial = 1801353600;
  users.ann.until.other = "2027-01-31";
  teams.ops = {
    users = [ "ann" ];
    until.other = "2026-12-31T23:59Z";
  };
  services.wiki.until.other = "2027-02-29";
  roles.other.services = [ "wiki" ];
}
