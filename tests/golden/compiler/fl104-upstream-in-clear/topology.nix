# Anybody on the network path could read codes and client secrets.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    registration = "http://login.example.org/register";
    upstream.partner = {
      issuer = "http://login.example.net";
      clientId = "florete";
    };
  };
}
