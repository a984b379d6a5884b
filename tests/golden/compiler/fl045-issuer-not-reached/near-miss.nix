# One service reaches the issuer by its own role, and one by a role of its host.
{ base, merge, ... }:
merge base {
  services.auth = {
    host = "alpha";
    port = 80;
  };
  services.wiki = {
    listenPort = 80;
    roles = [ "client" ];
    sso = {
      mode = "oidc";
      redirectURIs = [ "http://wiki.golden.flor.rete/callback" ];
    };
  };
  services.blog = {
    host = "alpha";
    port = 81;
    listenPort = 80;
    sso = {
      mode = "oidc";
      redirectURIs = [ "http://blog.alpha.golden.flor.rete" ];
    };
    scope = "node";
  };
  hosts.alpha.roles = [ "client" ];
  roles.client.services = [ "auth" ];
  roles.reader.services = [
    "wiki"
    "blog"
  ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
}
