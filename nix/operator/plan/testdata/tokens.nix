# A service may prove itself to another audience, and the signing keys are replaced.
{ base, merge, ... }:
let
  before = merge base {
    services.tokens = {
      host = "alpha";
      port = 5557;
      listenPort = 80;
    };
    services.wiki = {
      workloadApi = true;
      jwtAudiences = [ "vault" ];
    };
    roles.reader.services = base.roles.reader.services ++ [ "tokens" ];
    providers.jwt = {
      hosts = [ "alpha" ];
      issuer = "http://tokens.golden.flor.rete";
    };
  };
in
{
  inherit before;
  after = merge before {
    services.wiki.jwtAudiences = [
      "bank"
      "vault"
    ];
    providers.jwt.generation = 2;
  };
}
