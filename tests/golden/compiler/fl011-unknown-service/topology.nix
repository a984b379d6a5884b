{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "http://wikki.golden.flor.rete/callback" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.golden.flor.rete";
  };
  roles.reader.services = [ "wikki" ];
  serviceGroups.apps = [
    "wiki"
    "blog"
  ];
}
