# The service of this cluster has no parts.
{ base, merge, ... }:
merge base {
  federated.blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
    bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}'';
    services.shell = {
      address = "gate.blue.example:4610";
      port = 443;
    };
  };
  providers.federation.hosts = [ "alpha" ];
  hosts.beta.tags = [ "blue" ];
  services.shell = {
    host = "beta";
    port = 22;
    scope = "cluster";
  };
  roles.reader.services = [
    "wiki"
    "shell"
    "shell@blue"
  ];
}
