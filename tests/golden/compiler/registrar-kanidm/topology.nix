# Services are clients of an external Kanidm, whose API registers them.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    allowedGroups = [ "writers" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://idm.example.org";
    registration = "https://idm.example.org";
    registrar = "kanidm";
  };
}
