{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services = {
    wiki.sso = {
      mode = "gate";
      redirectURIs = [ "https://wiki.example.org/callback" ];
      rotate = 9;
    };
    each = {
      host = "beta";
      port = 8090;
      visibility = "public";
      tlsName = "each.example.org";
      tlsAliases = [ "*.each.example.org" ];
      sso.mode = "gate";
    };
    past = {
      host = "beta";
      port = 8091;
      visibility = "public";
      tlsName = "past.example.org";
      publicPorts.tcp = 4000;
      grpc = true;
      sso.mode = "gate";
    };
    auth = {
      host = "alpha";
      port = 5556;
      listenPort = 80;
      sso.session = 9;
    };
  };
  roles.ingress.services = [
    "auth"
    "each"
    "past"
  ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
}
