# The ingress has no role that leads to the service.
{ base, merge, ... }:
merge base {
  clusters.blue.services = {
    tickets = {
      address = "gate.example.org:4610";
      port = 80;
      tlsName = "tickets.example.org";
      roles = [ "reader" ];
    };
  };
  hosts.alpha.capabilities = [ "ingress" ];
}
