# Identities that only the other clusters have. A service of another cluster may also be a caller
# here.
{ base, merge, ... }:
let
  service = {
    address = "gate.example.org:4610";
    port = 80;
  };
in
merge base {
  services.shell = {
    hosts = [ "alpha" ];
    port = 22;
    scope = "node";
  };
  roles.reader.services = [
    "wiki"
    "shell"
    "tickets@blue"
    "tickets2@green"
  ];
  clusters = {
    blue = {
      identities = {
        "user/anne".roles = [ "reader" ];
        "node/gamma".roles = [ "reader" ];
        "service/alpha/other".roles = [ "reader" ];
        "service/gamma/shell".roles = [ "reader" ];
        "service/gamma/florete-provider-cert".roles = [ "reader" ];
      };
      services.tickets = service;
    };
    green.services.tickets2 = service;
  };
}
