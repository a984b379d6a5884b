# The cluster itself, and roles one by one; the other modules are not even there.
{ flake, modules, ... }: {
  imports = [ modules.host ];
  services.florete.cluster = flake.florete.demo;
  services.florete.hostName = "laptop";
}
