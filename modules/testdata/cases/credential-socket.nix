# Only services load credentials.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc = { start = "credential"; units = [ "outline.socket" ]; };
}
