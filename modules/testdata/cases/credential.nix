# A service waits for its secret, which is never in a file that its account can read.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc.start = "credential";
}
