{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.tags = [ "ghp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" ];
  services.wiki.smtpPassword = "correct horse";
  services.wiki.host = "$6$rounds=1000$salt$hash";
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://admin:hunter2@auth.example.org";
  };
}
