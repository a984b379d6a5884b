# Certificates in PEM, a JWK Set with a private key, and a file of another sort.
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
      bundle = builtins.head base.trust.roots;
    };
    key = blue // {
      trustDomain = "key.example";
      endpointID = "spiffe://key.example/bundles";
      bundle = "{\"keys\":[{\"use\":\"x509-svid\",\"d\":\"AAAA\"}]}";
    };
    none = blue // {
      trustDomain = "none.example";
      endpointID = "spiffe://none.example/bundles";
      bundle = ./none.json;
    };
  };
}
