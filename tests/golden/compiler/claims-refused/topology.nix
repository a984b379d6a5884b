# The issuer of the cluster has no claims for the scope, which is a misspelling.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    scopes = [ "profil" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
}
