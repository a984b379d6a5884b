# Registration by RFC 7591 has no groups.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    allowedGroups = [ "writers" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    registration = "https://auth.example.org/register";
  };
}
