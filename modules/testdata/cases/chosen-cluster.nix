# A cluster without a flake, and the module of one role alone.
{ flake, modules, ... }: {
  imports = [ modules.host ];
  services.florete.cluster = flake.florete.demo;
  services.florete.hostName = "laptop";
}
