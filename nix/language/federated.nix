# The record of a foreign trust domain, some of whose identities have roles here.
let
  inherit (import ./types)
    default
    enum
    listOf
    of
    record
    required
    ;
  inherit (import ./formats)
    endpoint
    pem
    spiffeBundle
    spiffeID
    trustDomain
    ;
in
record "a foreign trust domain" (
  {
    trustDomain = required "of its SPIFFE IDs" "\"blue.example\"" trustDomain;
    endpoint =
      required "its SPIFFE bundle endpoint, which providers.federation calls"
        "\"https://forge.blue.example:4605/federation/bundle\""
        endpoint;
    profile =
      default "how the endpoint is authenticated: by its SPIFFE ID, which the bundle in force verifies, or as Web sites are"
        "https_spiffe"
        (enum [
          "https_spiffe"
          "https_web"
        ]);
    endpointID = of "the SPIFFE ID that an endpoint of profile `https_spiffe` must present, of that trust domain" spiffeID;
    endpointRoots = of "CAs that verify an endpoint of profile `https_web`; those of the provider's machine unless written" (
      listOf pem
    );
    bundle =
      required
        "its first bundle: the path of a file in the form of the SPIFFE Trust Domain and Bundle specification, or its text. Later ones come from the endpoint, unless this one is newer"
        "./blue.bundle.json"
        spiffeBundle;
  }
  // import ./elsewhere.nix { called = "wiki.blue.example.rete"; }
)
