# A directive for a unit that does not exist.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.units."florete-agnt.service".Service.LimitNOFILE = 100000;
}
