# Identities of a foreign trust domain. Only hosts of the services that they reach get the bundle
# that verifies them, and services with a certificate get it in bundles of their own. Alpha
# refreshes the bundle. Ann reaches a service of another trust domain from her host.
{ base, merge, ... }:
merge base {
  services = {
    wiki = {
      user = "wiki-js";
      workloadApi = true;
    };
    blog = {
      host = "alpha";
      port = 8081;
      user = "blog";
      workloadApi = true;
    };
  };
  roles.blogger.services = [ "blog" ];
  users.ann.roles = [
    "blogger"
    "customer"
  ];
  federated = {
    blue = {
      trustDomain = "blue.example";
      endpoint = "https://forge.blue.example:4605/federation/bundle";
      endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
      bundle = ./blue.bundle.json;
      identities = {
        "user/bob".roles = [ "reader" ];
        "service/forge/crawler".roles = [ "reader" ];
        "node/idle" = { };
      };
    };
    # None of its identities reaches anything here.
    acme = {
      trustDomain = "acme.example";
      endpoint = "https://spire.acme.example/";
      endpointID = "spiffe://acme.example/spire/server";
      bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}'';
      services = {
        tickets = {
          address = [
            "192.0.2.77:4610"
            "gate.acme.example:4610"
          ];
          port = 443;
          roles = [ "customer" ];
        };
        "gate/ntp" = {
          address = "gate.acme.example:4610";
          port = 123;
          protocol = "udp";
          roles = [
            "blogger"
            "customer"
          ];
        };
      };
    };
  };
  roles.customer = { };
  providers.federation = {
    hosts = [ "alpha" ];
    refresh = 60;
  };
}
