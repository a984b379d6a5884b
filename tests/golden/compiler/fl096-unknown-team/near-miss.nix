{ base, merge, ... }:
merge base {
  teams.ops = {
    users = [ "ann" ];
    teams = [ "night" ];
    roles = [ "reader" ];
  };
  teams.night.users = [ "ann" ];
}
