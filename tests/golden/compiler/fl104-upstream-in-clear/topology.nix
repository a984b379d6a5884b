# Anybody on the way could read codes.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    upstream.partner = {
      issuer = "http://login.example.net";
      clientId = "florete";
    };
  };
}
