# Identities of this cluster that are also declared for another, or for two others; and such a name.
{ base, merge, ... }:
let
  service = {
    address = "gate.example.org:4610";
    port = 80;
  };
in
merge base {
  services = {
    shell = {
      hosts = [ "alpha" ];
      port = 22;
      scope = "node";
    };
    docs = {
      host = "beta";
      port = 81;
      aliases = [ "help" ];
    };
  };
  roles.reader.services = [
    "wiki"
    "docs"
    "shell"
    "wiki@blue"
  ];
  clusters = {
    blue = {
      identities = {
        "user/ann".roles = [ "reader" ];
        "node/alpha".roles = [ "reader" ];
        "service/wiki".roles = [ "reader" ];
        "service/alpha/shell".roles = [ "reader" ];
        "service/beta/florete-provider-cert".roles = [ "reader" ];
      };
      services = {
        wiki = service;
        help = service;
        tickets = service;
      };
    };
    green.services.tickets = service;
  };
}
