{
  # What every host may reach, and what operators may besides.
  control-plane = [ ];
  control-plane-write = [ ];
}
