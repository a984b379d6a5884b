# One role by itself brings what it cannot be without.
{ flake, modules, ... }: {
  imports = [ modules.forwarder ];
  services.florete.cluster = flake;
  services.florete.hostName = "laptop";
}
