{ base, merge, ... }:
merge base {
  teams.ops = {
    users = [ "ann" ];
    teams = [ "nigth" ];
    roles = [ "reader" ];
  };
  teams.night = {
    users = [ "ann" ];
    roles = [ "reader" ];
  };
}
