{
  # Every host has this one.
  node.serviceGroups = [ "control-plane" ];
  # Given by hand alone.
  operator.serviceGroups = [
    "control-plane"
    "control-plane-write"
  ];

  family.services = [ "wiki" ];
}
