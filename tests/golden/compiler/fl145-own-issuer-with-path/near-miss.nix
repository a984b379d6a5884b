# The URL of an external issuer may have a path.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org/realms/a";
    registration = "https://auth.example.org/realms/a/register";
  };
}
