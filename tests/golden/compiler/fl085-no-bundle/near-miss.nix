# A bundle with white space.
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
  federated.blue = blue // {
    bundle = "{ \"keys\": [ { \"use\": \"x509-svid\", \"kid\": \"d\" } ] }";
  };
}
