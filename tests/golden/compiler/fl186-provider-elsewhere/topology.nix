# A provider of the other cluster has the SPIFFE ID of one here.
{ base, merge, ... }:
merge base {
  clusters.blue.oidc = {
    issuer = "https://auth.blue.example";
    hosts.alpha = "gate.blue.example:4603";
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
