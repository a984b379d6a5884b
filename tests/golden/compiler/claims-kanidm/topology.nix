# Kanidm makes the groups of the wiki, and a claim with the same.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    scopes = [
      "profile"
      "wiki"
    ];
    claims.roles = "groups";
    groups.editor = [ "writers" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://idm.example.org";
    registration = "https://idm.example.org";
    registrar = "kanidm";
  };
}
