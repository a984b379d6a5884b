{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services.board = {
    host = "beta";
    visibility = "public";
    tlsName = "board.example.org";
    sso.mode = "gate";
    port = 8090;
  };
  services.auth = {
    host = "alpha";
    port = 5556;
    listenPort = 80;
  };
  services.monitor = {
    host = "beta";
    visibility = "host";
    port = 9090;
    user = "monitor";
    roles = [ "monitoring" ];
  };
  roles.monitoring.services = [ "board" ];
  roles.ingress.services = [
    "auth"
    "board"
  ];
  roles.reader.services = [
    "board"
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
