# The configuration of a reverse proxy is computed from the public names.
{ flake, modules, ... }: {
  imports = [
    modules.default
    ({ config, ... }: { seen = config.services.florete.ingress; })
  ];
  services.florete.cluster = flake;
  services.florete.hostName = "raishan";
}
