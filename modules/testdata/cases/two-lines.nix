# The shortest configuration of a host.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  networking.hostName = "ursula";
}
