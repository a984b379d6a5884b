# An endpoint with a SPIFFE ID of an undeclared trust domain, one in this cluster, and wrong
# identities.
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
    blue = blue // {
      endpointID = "spiffe://bleu.example/service/forge/florete-provider-federation";
      identities = {
        "bob".roles = [ "reader" ];
        "user/alice".roles = [
          "raeder"
          "operator"
          "node"
        ];
      };
    };
    own = blue // {
      trustDomain = "own.example";
      endpointID = "spiffe://golden.flor/service/alpha/florete-provider-federation";
    };
  };
}
