# The forwarder encrypts the connection.
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
      issuer = "http://login.partner.flor.rete:8080/realms/corp";
      clientId = "florete";
    };
  };
}
