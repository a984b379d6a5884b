# Adopted files and placeholders for needs of a second cluster.
{ further, instance, ... }: {
  imports = [
    (instance "blue")
    ({ config, ... }: { seen = config.services.florete_blue.needs.outline.oidc; })
  ];
  services.florete_blue = {
    cluster = further { };
    hostName = "ursula";
    needs.outline.oidc.adopt = "/run/secrets/outline-oidc";
    needs.wiki.file-smtp-password.start = "placeholders";
  };
}
