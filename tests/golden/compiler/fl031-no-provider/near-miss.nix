{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "beta" ];
    issuer = "https://auth.example.org";
  };
}
