{
  # Every host has this role.
  node.services = [ ];
  # Assign this role to operators.
  operator.serviceGroups = [
    "control-plane"
    "control-plane-write"
  ];

  family.services = [ "wiki" ];
}
