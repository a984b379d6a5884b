{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.example.org";
    sso.mode = "gate";
  };
  services.auth = {
    host = "alpha";
    port = 5556;
    listenPort = 80;
  };
  roles.ingress.services = [
    "auth"
    "wiki"
  ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
  };
}
