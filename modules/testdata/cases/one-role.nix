# The module of one role also configures activation, which the role needs.
{ flake, modules, ... }: {
  imports = [ modules.forwarder ];
  services.florete.cluster = flake;
  services.florete.hostName = "laptop";
}
