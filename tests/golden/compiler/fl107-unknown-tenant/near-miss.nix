# A tenant that exists.
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
    ];
  };
  services.wiki = {
    user = "wiki-js";
    tokens.a.tenant = "acme";
    verifies = [ "acme" ];
  };
}
