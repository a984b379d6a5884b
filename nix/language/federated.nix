# The record of a foreign trust domain. It lists those identities of the domain that have roles in
# this cluster.
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
    trustDomain = required "Trust domain of the SPIFFE IDs." "\"blue.example\"" trustDomain;
    endpoint =
      required "URL of its SPIFFE bundle endpoint, which `providers.federation` calls."
        "\"https://forge.blue.example:4605/federation/bundle\""
        endpoint;
    profile =
      default
        "How the endpoint is authenticated: `https_spiffe`, by its SPIFFE ID and the bundle in force; `https_web`, like a web site."
        "https_spiffe"
        (enum [
          "https_spiffe"
          "https_web"
        ]);
    endpointID = of "SPIFFE ID that the endpoint must present with the profile `https_spiffe`. It belongs to that trust domain." spiffeID;
    endpointRoots = of "CA certificates that verify the endpoint with the profile `https_web`. By default those of the provider's machine." (
      listOf pem
    );
    bundle =
      required
        "First SPIFFE bundle of the trust domain: the path of a file, or its text. Later ones come from the endpoint, unless this one is newer."
        "./blue.bundle.json"
        spiffeBundle;
  }
  // import ./elsewhere.nix { called = "wiki.blue.example.rete"; }
)
