# A directive of a unit that is not there.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.units."florete-agnt.service".Service.LimitNOFILE = 100000;
}
