# A host signs in people from a directory, for which it has a password.
{ further, instance, ... }: {
  imports = [ (instance "blue") ];
  services.florete_blue = {
    cluster = further {
      providers.oidc.ldap.corp = {
        server = "ldaps://ldap.example.org";
        bindDN = "cn=florete,dc=example";
        people.base = "ou=people,dc=example";
      };
    };
    hostName = "drhorrible";
    provider = {
      usersFile = "/run/keys/users.hujson";
      connectorSecrets.corp = "/run/keys/ldap";
    };
  };
}
