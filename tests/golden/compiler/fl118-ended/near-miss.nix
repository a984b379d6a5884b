# A minute before the end.
{ base, merge, ... }:
merge base {
  serial = 1801353600;
  users.ann.until.other = "2027-01-31T00:01Z";
  roles.other.services = [ "wiki" ];
}
