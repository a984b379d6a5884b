# A unit starts at boot, with placeholders in its files.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc = {
    start = "placeholders";
    placeholders.issuer = "http://localhost";
  };
}
