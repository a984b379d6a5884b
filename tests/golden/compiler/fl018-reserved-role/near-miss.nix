{ base, merge, ... }:
merge base {
  # Saying what is so anyway is no fault.
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
