# Objects of another tenant, and objects without a namespace.
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
        object = "tenant:*";
      }
      {
        subject = "role:b";
        action = "stream.read";
        object = "stream:*/*";
      }
      {
        subject = "role:c";
        action = "stream.read";
        object = "stream:acme/*/*";
      }
      {
        subject = "role:d";
        action = "stream.read";
        object = "stream:other/payments/x";
      }
      {
        subject = "role:e";
        action = "stream.read";
        object = "*";
      }
    ];
  };
}
