# Dex serves its pages at the root of a host.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org/realms/a";
  };
}
