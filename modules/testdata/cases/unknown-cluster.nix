{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.clusterName = "prod";
}
