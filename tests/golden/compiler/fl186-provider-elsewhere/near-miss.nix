# The providers are on hosts of different names.
{ base, merge, ... }:
merge base {
  clusters.blue.oidc = {
    issuer = "https://auth.blue.example";
    hosts.gate = "gate.blue.example:4603";
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
