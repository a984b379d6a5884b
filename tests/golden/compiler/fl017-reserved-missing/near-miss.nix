# What they reach is for the cluster to say.
{ base, ... }:
base
// {
  roles = {
    node = { };
    operator = { };
    inherit (base.roles) reader;
  };
}
