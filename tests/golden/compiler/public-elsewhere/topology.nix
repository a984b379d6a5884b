# Strangers reach a service of another cluster through the ingress of this one, by its rules.
{ base, merge, ... }:
merge base {
  clusters.blue = {
    identities = { };
    services.tickets = {
      address = "gate.example.org:4610";
      port = 80;
      tlsName = "tickets.example.org";
      ingress = {
        from = [ "198.51.100.0/24" ];
        paths."/admin".deny = true;
        maxBody = 64;
      };
    };
  };
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "edge" ];
  roles.edge.services = [ "tickets@blue" ];
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "ops@example.org";
  };
}
