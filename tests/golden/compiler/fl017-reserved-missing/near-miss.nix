# The cluster decides what the reserved roles reach.
{ base, ... }:
base
// {
  roles = {
    node = { };
    operator = { };
    inherit (base.roles) reader;
  };
}
