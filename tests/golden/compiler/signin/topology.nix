# Users from a directory and from another organization, and settings of clients.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/callback" ];
    postLogoutRedirectURIs = [ "https://wiki.example.org/bye" ];
    scopes = [
      "profile"
      "email"
    ];
    allowedGroups = [
      "writers"
      "admins"
    ];
  };
  services.app = {
    host = "beta";
    port = 8081;
    visibility = "host";
    sso = {
      mode = "oidc";
      redirectURIs = [ "https://app.example.org/callback" ];
      public = true;
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    ldap.corp = {
      title = "Staff";
      server = "ldaps://ldap.example.org";
      bindDN = "cn=florete,dc=example";
      people = {
        base = "ou=people,dc=example";
        filter = "(objectClass=inetOrgPerson)";
      };
      groups.base = "ou=groups,dc=example";
    };
    upstream.partner = {
      issuer = "https://login.example.net/realms/corp";
      clientId = "florete";
      groups = "groups";
    };
  };
}
