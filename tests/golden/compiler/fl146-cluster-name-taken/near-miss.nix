# Each has its own name.
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
    golden2.services.tickets = service;
    azure.services.chat = service;
  };
}
