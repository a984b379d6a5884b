# The issuer of the other cluster is declared.
{ base, merge, ... }:
merge base {
  clusters.blue.oidc = {
    issuer = "https://auth.blue.example";
    hosts.gate = "gate.blue.example:4603";
  };
  services.wiki.sso = {
    mode = "oidc";
    cluster = "blue";
    redirectURIs = [ "https://wiki.example.org/callback" ];
  };
}
