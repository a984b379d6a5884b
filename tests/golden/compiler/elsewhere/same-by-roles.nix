{ base, merge, ... }:
merge base {
  federated.blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
    bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}'';
    services = {
      wiki = {
        address = "gate.blue.example:4610";
        port = 443;
        roles = [ "reader" ];
      };
      "gate/ntp" = {
        address = "gate.blue.example:4610";
        port = 123;
        protocol = "udp";
        roles = [ "guest" ];
      };
    };
  };
  providers.federation.hosts = [ "alpha" ];
  hosts.alpha.roles = [ "chief" ];
  roles.reader.services = [ "wiki" ];
  roles.chief.roles = [ "guest" ];
  roles.guest = { };
}
