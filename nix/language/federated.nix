# The record of a foreign trust domain, some of whose identities have roles here.
let
  inherit (import ../types.nix)
    attrsOf
    default
    enum
    listOf
    of
    oneOrMore
    record
    required
    ;
  inherit (import ../formats.nix)
    endpoint
    forwarderAddress
    pem
    port
    spiffeBundle
    spiffeID
    strings
    trustDomain
    ;
in
record "a foreign trust domain" {
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
  identities =
    of
      "those of its identities that reach something here, by what follows the trust domain in their IDs: `\"user/alice\"`, `\"service/backup\"`"
      (
        attrsOf (
          record "a foreign identity" {
            roles = of "what it may reach" strings;
          }
        )
      );
  services =
    of
      "those of its services that are reached from here, by what follows `service/` in their IDs: `\"wiki\"`, `\"forge/wiki\"`; they are called `wiki.blue.example.rete`"
      (
        attrsOf (
          record "a foreign service" {
            address =
              required "where forwarders that publish it are called, each with its port: one, or a list"
                "\"192.0.2.1:4610\""
                (oneOrMore forwarderAddress);
            port = required "the port callers use" "80" port;
            protocol = of "what it speaks" (enum [
              "tcp"
              "udp"
            ]);
            roles = of "roles that reach it" strings;
          }
        )
      );
}
