# Another module uses delivered files.
{ flake, modules, ... }: {
  imports = [
    modules.default
    ({ config, ... }: { seen = config.services.florete.needs.outline.oidc.files; })
  ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.cert = {
    units = [
      "sidecar.service"
      "sidecar.socket"
    ];
  };
  services.florete.needs.outline.oidc.start = "always";
}
