{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outlin.oidc.start = "always";
  services.florete.needs.outline.ssh.start = "always";
}
