{ base, merge, ... }:
merge base {
  hosts.alpha.roles = [ "raeder" ];
  services.wiki.roles = [ "writer" ];
  users.ann.roles = [
    "reader"
    "operators"
  ];
}
