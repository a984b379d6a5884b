# A service, and URLs outside the trust domain.
{ base, merge, ... }:
merge base {
  services.blog = {
    host = "alpha";
    port = 1;
  };
  services.wiki.listenPort = 80;
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [
      "http://wiki.golden.flor.rete/callback"
      "https://wikki.golden.flor/callback"
    ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.goldenxflor.rete";
  };
  serviceGroups.apps = [
    "wiki"
    "blog"
  ];
}
