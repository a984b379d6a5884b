# One provider of documents is on the same host as the provider of tokens.
{ base, merge, ... }:
merge base {
  tenants.acme = {
    namespaces = [ "payments" ];
    runtimeRules = true;
  };
  providers.token = {
    hosts = [ "alpha" ];
    issuer = "https://tokens.example.org";
  };
  providers.jwt = {
    hosts = [ "alpha" ];
    issuer = "https://svids.example.org";
  };
  providers.config.hosts = [
    "beta"
    "alpha"
  ];
}
