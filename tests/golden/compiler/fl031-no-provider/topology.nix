{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.cert.hosts = [ ];
}
