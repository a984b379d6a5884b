# The cluster itself, and one role; the other modules are not even there.
{ flake, modules, ... }: {
  imports = [ modules.host ];
  services.florete.cluster = flake.florete.demo;
  services.florete.hostName = "laptop";
}
