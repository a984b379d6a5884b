# A host in two clusters, which both publish services that run on it.
{
  flake,
  further,
  instance,
  modules,
  ...
}:
{
  imports = [
    modules.default
    (instance "blue")
  ];
  networking.hostName = "ursula";
  services.florete.cluster = flake;
  services.florete_blue = {
    cluster = further { };
    host.openFirewall = true;
    needs.outline.oidc.start = "credential";
    needs.wiki.file-smtp-password.start = "always";
  };
}
