{ base, merge, ... }:
merge base {
  federated.blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
    bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}'';
    services.tickets = {
      address = "gate.blue.example:4610";
      port = 443;
    };
  };
  clusters.red.services.orders = {
    address = "gate.example.org:4610";
    port = 443;
  };
  providers.federation.hosts = [ "alpha" ];
  roles.reader.services = [
    "wiki"
    "ticket@blue"
    "wiki@blue"
    "tickets@red"
  ];
}
