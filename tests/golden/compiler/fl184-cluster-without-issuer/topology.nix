# The other cluster is declared without its issuer.
{ base, merge, ... }:
merge base {
  clusters.blue = { };
  services.wiki.sso = {
    mode = "oidc";
    cluster = "blue";
    redirectURIs = [ "https://wiki.example.org/callback" ];
  };
}
