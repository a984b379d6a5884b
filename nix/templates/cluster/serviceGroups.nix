{
  # Who reaches them reads at providers.config, and publishes there.
  control-plane = [ ];
  control-plane-write = [ ];
}
