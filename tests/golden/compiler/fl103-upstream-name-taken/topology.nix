# A directory and an issuer with one name.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    ldap.corp = {
      server = "ldaps://ldap.example.org";
      people.base = "ou=people,dc=example";
    };
    upstream.corp = {
      issuer = "https://login.example.net/realms/corp";
      clientId = "florete";
    };
  };
}
