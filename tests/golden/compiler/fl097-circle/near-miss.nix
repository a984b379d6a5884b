# The same role twice is no circle.
{ base, merge, ... }:
merge base {
  teams.ops = {
    users = [ "ann" ];
    teams = [
      "day"
      "night"
    ];
    roles = [ "chief" ];
  };
  teams.day = {
    users = [ "ann" ];
    teams = [ "night" ];
  };
  teams.night.users = [ "ann" ];
  roles.editor.roles = [ "reader" ];
  roles.chief.roles = [
    "editor"
    "reader"
  ];
}
