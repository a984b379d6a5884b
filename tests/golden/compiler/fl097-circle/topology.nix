# Two teams, two roles, and a role in itself.
{ base, merge, ... }:
merge base {
  teams.ops = {
    users = [ "ann" ];
    teams = [ "night" ];
    roles = [ "reader" ];
  };
  teams.night = {
    users = [ "ann" ];
    teams = [ "ops" ];
  };
  roles.reader.roles = [ "editor" ];
  roles.editor.roles = [ "reader" ];
  roles.itself.roles = [ "itself" ];
  roles.alone = {
    services = [ "wiki" ];
    roles = [ "alone" ];
  };
}
