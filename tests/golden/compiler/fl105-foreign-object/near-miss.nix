# All objects of the tenant, of a namespace, and of a kind in a namespace.
{ base, merge, ... }:
merge base {
  providers.token = {
    hosts = [ "alpha" ];
    issuer = "https://tokens.example.org";
  };
  tenants.acme = {
    namespaces = [ "payments" ];
    issuers.corp = {
      issuer = "https://login.example.org";
      audiences = [ "ci" ];
    };
    policies = [
      {
        subject = "role:a";
        action = "stream.read";
        object = "tenant:acme";
      }
      {
        subject = "role:b";
        action = "stream.read";
        object = "namespace:acme/*";
      }
      {
        subject = "role:c";
        action = "stream.read";
        object = "stream:acme/payments/*";
      }
    ];
  };
}
