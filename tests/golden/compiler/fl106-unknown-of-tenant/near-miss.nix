# Namespaces and issuers of the tenant.
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
        object = "stream:acme/payments/x";
      }
      {
        subject = "group:corp/devs";
        action = "stream.read";
        object = "tenant:acme";
      }
    ];
  };
}
