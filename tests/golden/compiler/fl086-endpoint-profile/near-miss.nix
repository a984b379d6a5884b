# One of each profile.
{ base, merge, ... }:
let
  blue = {
    trustDomain = "blue.example";
    endpoint = "https://forge.blue.example:4605/federation/bundle";
    endpointID = "spiffe://blue.example/bundles";
    bundle = "{\"keys\":[{\"use\":\"x509-svid\"}],\"spiffe_sequence\":1}";
    identities."user/bob".roles = [ "reader" ];
  };
in
merge base {
  providers.federation.hosts = [ "alpha" ];
  federated = {
    inherit blue;
    green = removeAttrs blue [ "endpointID" ] // {
      trustDomain = "green.example";
      profile = "https_web";
    };
    red = removeAttrs blue [ "endpointID" ] // {
      trustDomain = "red.example";
      profile = "https_web";
      endpointRoots = [ "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n" ];
    };
  };
}
