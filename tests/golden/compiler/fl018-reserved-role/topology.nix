{ base, merge, ... }:
merge base {
  users.ann.roles = [
    "node"
    "reader"
  ];
  services.wiki.roles = [ "node" ];
  hostGroups.eu.roles = [ "operator" ];
}
