{
  # Every host has this one: what all of them reach.
  node.services = [ ];
  # Given by hand alone.
  operator.serviceGroups = [
    "control-plane"
    "control-plane-write"
  ];

  family.services = [ "wiki" ];
}
