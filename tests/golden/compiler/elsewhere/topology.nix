# Services of another cluster by name: in a role, in a group, and by a role that contains such a
# role. A service of this cluster with the same name is not affected.
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
      };
      "gate/ntp" = {
        address = "gate.blue.example:4610";
        port = 123;
        protocol = "udp";
      };
      unused = {
        address = "gate.blue.example:4610";
        port = 80;
      };
    };
  };
  providers.federation.hosts = [ "alpha" ];
  hosts.alpha.roles = [ "chief" ];
  serviceGroups.clocks = [ "gate/ntp@blue" ];
  roles.reader.services = [
    "wiki"
    "wiki@blue"
  ];
  roles.chief = {
    roles = [ "guest" ];
  };
  roles.guest.serviceGroups = [ "clocks" ];
}
