# A role of the ingress leads to the service.
{ base, merge, ... }:
merge base {
  clusters.blue.services = {
    tickets = {
      address = "gate.example.org:4610";
      port = 80;
      tlsName = "tickets.example.org";
      roles = [ "edge" ];
    };
  };
  roles.edge.services = [ "wiki" ];
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "edge" ];
}
