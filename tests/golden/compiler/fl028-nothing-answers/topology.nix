# URLs with ports at which upstreams listen, and not the ports that programs call.
{ base, merge, ... }:
merge base {
  services.auth = {
    host = "beta";
    port = 5556;
  };
  services.wiki = {
    aliases = [
      "*.wiki"
      "docs"
    ];
    roles = [ "client" ];
    sso = {
      mode = "oidc";
      redirectURIs = [
        "https://wiki.golden.flor.rete/callback"
        "http://wiki.golden.flor.rete:80/callback"
        "http://docs.golden.flor.rete/callback"
        "http://any.wiki.golden.flor.rete/callback"
      ];
    };
  };
  services.blog = {
    host = "alpha";
    port = 81;
    listenPort = 80;
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
    issuer = "http://auth.golden.flor.rete";
  };
}
