# Only services may load credentials, and only their own.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc = {
    start = "credential";
    units = [
      "outline.socket"
      "sidecar.service"
      "outline.service"
    ];
  };
}
