{ base, merge, ... }:
merge base {
  teams.nobody.roles = [ "reader" ];
  teams.nothing.users = [ "ann" ];
}
