# A client for each host.
{ base, merge, ... }:
merge (base // { services = { }; }) {
  roles.reader.services = [ "wiki" ];
  services.wiki = {
    hosts = [
      "alpha"
      "beta"
    ];
    scope = "node";
    port = 8080;
    sso = {
      mode = "oidc";
      redirectURIs = [ "https://wiki.example.org/" ];
      rotate = 30;
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
}
