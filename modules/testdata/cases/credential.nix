# A service waits for its secret, which never is a file that its account can read.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc.start = "credential";
}
