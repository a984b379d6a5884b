# A tenant has more rules than its quota.
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
        object = "tenant:acme";
      }
    ];
    quotas.policies = 1;
  };
}
