# Services are clients of an external Pocket ID, whose API registers them.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    allowedGroups = [ "writers" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://id.example.org";
    registration = "https://id.example.org";
    registrar = "pocket-id";
  };
}
