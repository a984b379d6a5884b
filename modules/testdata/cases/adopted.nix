# Existing files are adopted, and the unit starts at once.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  services.florete.hostName = "ursula";
  services.florete.needs.outline.oidc.adopt = "/var/lib/pushed/outline";
}
