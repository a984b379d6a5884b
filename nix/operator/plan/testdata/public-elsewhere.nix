# A service of another cluster gets a public name at the ingress here, at first for one network.
{ base, merge, ... }:
let
  before = merge base {
    clusters.blue.services.tickets = {
      address = "gate.example.org:4610";
      port = 80;
    };
    hosts.alpha.capabilities = [ "ingress" ];
    hosts.alpha.roles = [ "edge" ];
    roles.edge.services = [ "tickets@blue" ];
    providers.tls = {
      hosts = [ "alpha" ];
      contact = "ops@example.org";
    };
  };
in
{
  inherit before;
  after = merge before {
    clusters.blue.services.tickets = {
      tlsName = "tickets.example.org";
      ingress.from = [ "198.51.100.0/24" ];
    };
  };
}
