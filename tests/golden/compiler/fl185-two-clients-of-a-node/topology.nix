# One node would fetch both clients by the need oidc-wiki.
{ base, key, merge, ... }:
merge base {
  clusters.blue.clients = {
    "apex/board" = {
      nodes = {
        gate = key "gate";
      };
      redirectURIs = [ "https://board.example.org/callback" ];
    };
    "gate/board" = {
      nodes = {
        gate = key "gate";
      };
      redirectURIs = [ "https://board.example.org/return" ];
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
  services.auth = {
    host = "alpha";
    port = 5556;
    visibility = "host";
  };
}
