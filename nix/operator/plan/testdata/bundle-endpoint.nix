# The bundle endpoint of a foreign trust domain is verified with another CA.
{ base, merge, ... }:
let
  before = merge base {
    providers.federation.hosts = [ "alpha" ];
    federated.blue = {
      trustDomain = "blue.example";
      endpoint = "https://forge.blue.example:4605/federation/bundle";
      profile = "https_web";
      bundle = ../../../../tests/golden/compiler/federation/blue.bundle.json;
      identities."user/ann".roles = [ "reader" ];
    };
  };
in
{
  inherit before;
  after = merge before {
    federated.blue.endpointRoots = [ "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n" ];
  };
}
