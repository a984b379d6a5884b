{ modules, ... }: {
  imports = [ modules.host ];
  services.florete.host.enable = true;
}
