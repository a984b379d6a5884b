# Another cluster with the name of this one, and one with the name of a foreign trust domain.
{ base, merge, ... }:
let
  service = {
    address = "gate.example.org:4610";
    port = 80;
    roles = [ "reader" ];
  };
in
merge base {
  providers.federation.hosts = [ "alpha" ];
  federated.blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
    bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}'';
  };
  clusters = {
    golden.services.tickets = service;
    blue.services.chat = service;
  };
}
