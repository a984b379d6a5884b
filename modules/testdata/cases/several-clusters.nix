{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster.florete = {
    a = flake.florete.demo;
    b = flake.florete.demo;
  };
}
