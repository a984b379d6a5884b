{ base, merge, ... }:
merge base {
  # A reserved role may be written where it holds anyway.
  hosts.alpha.roles = [
    "node"
    "operator"
  ];
  users.ann.roles = [
    "operator"
    "reader"
  ];
  hostGroups.eu.roles = [ "node" ];
}
