# RFC 7591 gives a client no claims of its own.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    scopes = [ "wiki" ];
    claims.nickname = "preferred_username";
    groups.editor = [ "writers" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    registration = "https://auth.example.org/register";
  };
}
