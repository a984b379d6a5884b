{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.tags = [ "ghp" ];
  services.wiki.files.smtp-password.ref = "wiki/smtp-password";
  providers.file.hosts = [ "alpha" ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/realm@home" ];
  };
}
