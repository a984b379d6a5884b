{ modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = {
    outPath = "/some/flake";
  };
}
