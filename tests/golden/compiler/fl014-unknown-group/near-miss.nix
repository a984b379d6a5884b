{ base, merge, ... }:
merge base {
  roles.reader.serviceGroups = [
    "apps"
    "control-plane"
  ];
  serviceGroups.apps = [ ];
}
