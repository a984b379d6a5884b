# Endpoints without the attributes of their profile, or with those of the other profile.
{ base, merge, ... }:
let
  blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    bundle = "{\"keys\":[{\"use\":\"x509-svid\"}],\"spiffe_sequence\":1}";
    identities."user/bob".roles = [ "reader" ];
  };
in
merge base {
  providers.federation.hosts = [ "alpha" ];
  federated = {
    inherit blue;
    green = blue // {
      trustDomain = "green.example";
      profile = "https_web";
      endpointID = "spiffe://green.example/bundles";
    };
    red = blue // {
      trustDomain = "red.example";
      endpointID = "spiffe://red.example/bundles";
      endpointRoots = [ "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n" ];
    };
  };
}
