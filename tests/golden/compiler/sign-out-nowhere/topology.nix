# Kanidm does not redirect users after they sign out.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    postLogoutRedirectURIs = [ "https://wiki.example.org/bye" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://idm.example.org";
    registration = "https://idm.example.org";
    registrar = "kanidm";
  };
}
