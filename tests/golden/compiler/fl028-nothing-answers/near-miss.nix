# URLs with the ports of callers, written or not, and pages that a proxy serves from the provider.
{ base, merge, ... }:
merge base {
  services.auth = {
    host = "beta";
    listenPort = 443;
    upstream = "192.0.2.1:5556";
  };
  services.wiki = {
    port = 80;
    aliases = [
      "*.wiki"
      "docs"
    ];
    roles = [ "client" ];
    sso = {
      mode = "oidc";
      redirectURIs = [
        "http://wiki.golden.flor.rete?code"
        "http://docs.golden.flor.rete/callback"
        "http://any.wiki.golden.flor.rete/callback"
        "https://wiki.example.org:8443/callback"
      ];
    };
  };
  services.blog = {
    host = "alpha";
    port = 81;
    scope = "node";
    sso = {
      mode = "oidc";
      redirectURIs = [ "http://blog.alpha.golden.flor.rete:81" ];
    };
  };
  hosts.alpha.roles = [ "client" ];
  roles.client.services = [ "auth" ];
  roles.reader.services = [
    "wiki"
    "blog"
  ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.golden.flor.rete";
  };
}
