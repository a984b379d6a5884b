# A directory of adopted files must not be in the Nix store, because they are secret.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc.adopt = "/nix/store/aaaa-outline";
}
