{ base, ... }:
base
// {
  roles = { inherit (base.roles) operator reader; };
  serviceGroups = {
    control-plane = [ ];
  };
}
