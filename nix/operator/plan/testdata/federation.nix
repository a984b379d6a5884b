# An identity of a foreign trust domain gets a role, and the host of the service that it reaches
# needs the bundle.
{ base, merge, ... }:
let
  before = merge base {
    providers.federation.hosts = [ "alpha" ];
  };
in
{
  inherit before;
  after = before // {
    federated.blue = {
      trustDomain = "blue.example";
      endpoint = "https://forge.blue.example:4605/federation/bundle";
      endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
      bundle = ../../../../tests/golden/compiler/federation/blue.bundle.json;
      identities."user/ann".roles = [ "reader" ];
    };
  };
}
