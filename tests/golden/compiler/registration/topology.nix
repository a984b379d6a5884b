# Services are clients of an external issuer, which registers them.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://login.example.org/realms/a";
    registration = "https://login.example.org/realms/a/register";
  };
}
