{ base, merge, ... }:
merge base {
  tenants.acme = {
    policies = [
      {
        subject = "role:writer";
        action = "stream.read";
        object = "tenant:acme";
      }
    ];
    groupings = [
      {
        member = "user/ann";
        role = "role:writer";
      }
    ];
  };
  providers.token = {
    hosts = [ "alpha" ];
    issuer = "https://tokens.example.org";
  };
  providers.jwt = {
    hosts = [ "alpha" ];
    issuer = "https://svids.example.org";
  };
  providers.config.hosts = [ "alpha" ];
}
