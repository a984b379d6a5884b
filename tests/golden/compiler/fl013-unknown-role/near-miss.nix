{ base, merge, ... }:
merge base {
  hosts.alpha.roles = [
    "operator"
    "reader"
  ];
  services.wiki.roles = [ "reader" ];
}
