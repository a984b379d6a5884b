# A machine outside the cluster reaches a service with a gate through the ingress host. The entry
# announces it, so that the forwarder of the service can tell it from the ingress, and refuse it.
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
  outside.scanner = {
    addresses = [ "192.0.2.7" ];
    via = "alpha";
    reaches = [ "board" ];
  };
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
