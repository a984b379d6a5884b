# Kanidm makes claims from groups alone, and shows all groups to who has the scope.
{ base, merge, ... }:
merge base {
  services = {
    wiki.sso = {
      mode = "oidc";
      redirectURIs = [ "https://wiki.example.org/" ];
      claims.nickname = "preferred_username";
    };
    notes = {
      host = "beta";
      port = 8090;
      visibility = "host";
      sso = {
        mode = "oidc";
        redirectURIs = [ "https://notes.example.org/" ];
        groups."Site Admin" = [ "ops" ];
      };
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://idm.example.org";
    registration = "https://idm.example.org";
    registrar = "kanidm";
  };
}
