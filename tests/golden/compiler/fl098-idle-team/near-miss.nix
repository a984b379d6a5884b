{ base, merge, ... }:
merge base {
  teams.all = {
    teams = [ "some" ];
    roles = [ "reader" ];
  };
  teams.some.users = [ "ann" ];
}
