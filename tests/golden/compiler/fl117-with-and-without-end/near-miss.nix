# A team gives it for good, which counts.
{ base, merge, ... }:
merge base {
  users.ann.roles = [ ];
  users.ann.until.reader = "2027-01-31";
  teams.ops = {
    users = [ "ann" ];
    roles = [ "reader" ];
  };
}
