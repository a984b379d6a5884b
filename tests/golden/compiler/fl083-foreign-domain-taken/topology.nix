# The cluster's own trust domain as a foreign one, and another that is declared twice.
{ base, merge, ... }:
let
  blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    endpointID = "spiffe://blue.example/service/forge/florete-provider-federation";
    bundle = "{\"keys\":[{\"use\":\"x509-svid\"}],\"spiffe_sequence\":1}";
    identities."user/bob".roles = [ "reader" ];
  };
in
merge base {
  providers.federation.hosts = [ "alpha" ];
  federated = {
    inherit blue;
    self = blue // {
      trustDomain = "golden.flor";
      endpointID = "spiffe://golden.flor/service/alpha/florete-provider-federation";
    };
    azure = blue;
  };
}
