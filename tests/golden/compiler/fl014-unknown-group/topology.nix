{ base, merge, ... }:
merge base {
  roles.reader.serviceGroups = [
    "apps"
    "control-plan"
  ];
}
