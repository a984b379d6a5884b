# Names in a section that is no set are no faults of their own.
{ base, ... }:
base
// {
  hosts = [ "alpha" ];
  users = [ "ann" ];
  roles = base.roles // {
    reader.serviceGroups = [ "none" ];
  };
  serviceGroups = [ "control-plane" ];
}
