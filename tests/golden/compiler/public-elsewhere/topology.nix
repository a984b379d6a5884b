# Strangers reach services of another cluster and of another trust domain through the ingress of
# this one, by its rules.
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
  federated.acme = {
    trustDomain = "acme.example";
    endpoint = "https://spire.acme.example/";
    endpointID = "spiffe://acme.example/spire/server";
    bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}'';
    services.shop = {
      address = "gate.acme.example:4610";
      port = 80;
      roles = [ "edge" ];
      tlsName = "shop.example.org";
      ingress = {
        hosts = [ "alpha" ];
        from = [ "198.51.100.0/24" ];
        hsts = 86400;
        maxBody = 8;
        timeout = 60;
        paths = {
          "/admin".deny = true;
          "/stock".from = [ "203.0.113.0/24" ];
        };
      };
    };
  };
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "edge" ];
  roles.edge.services = [ "tickets@blue" ];
  providers.federation.hosts = [ "alpha" ];
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "ops@example.org";
  };
}
