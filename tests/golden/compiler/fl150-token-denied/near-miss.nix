# Rules added at run time may permit the action.
{ base, merge, ... }:
merge base {
  tenants.acme = {
    namespaces = [ "payments" ];
    runtimeRules = true;
    policies = [
      {
        subject = "role:writer";
        action = "stream.publish";
        object = "tenant:acme";
      }
      {
        subject = "user/ann";
        action = "stream.delete";
        object = "tenant:acme";
      }
    ];
    groupings = [
      {
        member = "service/wiki";
        role = "role:writer";
      }
    ];
  };
  services.wiki.tokens.events = {
    tenant = "acme";
    requested = [
      "stream.delete"
      "stream.publish"
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
