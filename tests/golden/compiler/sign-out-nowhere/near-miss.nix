# Kanidm can limit scopes.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    scopes = [ "email" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://idm.example.org";
    registration = "https://idm.example.org";
    registrar = "kanidm";
  };
}
