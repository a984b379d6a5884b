# What is taken over is secret too.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc.adopt = "/nix/store/aaaa-outline";
}
