{
  # Every host has this one.
  node.groups = [ "control-plane" ];
  # Given by hand alone.
  operator.groups = [ "control-plane" "control-plane-write" ];

  family.services = [ "wiki" ];
}
