# IDs change to another trust domain with the same path: audiences, callbacks, and requests of a
# kind of its own.
{ base, merge, ... }:
let
  before = merge base {
    providers.jwt = {
      hosts = [ "alpha" ];
      issuer = "https://tokens.example.org";
    };
    providers.licence = {
      hosts = [ "alpha" ];
      port = 4650;
      run = "/run/current-system/sw/bin/licence";
      request.who.type = "string";
      answer.key = { };
    };
    services.wiki = {
      workloadApi = true;
      jwtAudiences = [ "spiffe://golden.flor/service/vault" ];
      sso.redirectURIs = [ "https://wiki.example.org/spiffe://golden.flor/callback" ];
      needs.key = {
        kind = "licence";
        request.who = "spiffe://golden.flor/user/ann";
      };
    };
  };
in
{
  inherit before;
  after = merge before {
    services.wiki = {
      jwtAudiences = [ "spiffe://blue.example/service/vault" ];
      sso.redirectURIs = [ "https://wiki.example.org/spiffe://blue.example/callback" ];
      needs.key.request.who = "spiffe://blue.example/user/ann";
    };
  };
}
