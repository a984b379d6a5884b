{ base, merge, ... }:
merge base {
  services.auth = {
    host = "alpha";
    port = 80;
  };
  services.wiki.listenPort = 80;
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "http://wiki.golden.flor.rete/callback" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
  roles.reader.services = [
    "wiki"
    "auth"
  ];
}
