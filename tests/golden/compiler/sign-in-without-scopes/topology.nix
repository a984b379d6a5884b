# Pocket ID permits all scopes to every client.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    scopes = [ "email" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://id.example.org";
    registration = "https://id.example.org";
    registrar = "pocket-id";
  };
}
