{
  # The first permits reading at providers.config, the second also publishing.
  control-plane = [ ];
  control-plane-write = [ ];
}
