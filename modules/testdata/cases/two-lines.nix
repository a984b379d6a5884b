# All that a host needs.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  networking.hostName = "ursula";
}
