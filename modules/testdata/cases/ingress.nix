# A reverse proxy is told which public name leads where.
{ flake, modules, ... }: {
  imports = [
    modules.default
    ({ config, ... }: { seen = config.services.florete.ingress; })
  ];
  services.florete.cluster = flake;
  services.florete.hostName = "raishan";
}
