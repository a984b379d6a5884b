{ base, ... }: base // {
  roles = { inherit (base.roles) operator reader; };
  groups = { control-plane = [ ]; };
}
