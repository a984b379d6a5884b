# Tokens of tenants: a service with a token, one that verifies tokens, and external issuers.
{ base, merge, ... }:
merge base {
  tenants = {
    acme = {
      namespaces = [
        "payments"
        "logs"
      ];
      issuers.corp = {
        issuer = "https://login.example.org/acme";
        audiences = [ "api://acme" ];
        groupsClaim = "groups";
      };
      policies = [
        {
          subject = "role:writer";
          action = "stream.publish";
          object = "stream:acme/payments/*";
        }
        {
          subject = "group:corp/devs";
          action = "stream.subscribe";
          object = "namespace:acme/*";
        }
      ];
      groupings = [
        {
          member = "service/wiki";
          role = "role:writer";
        }
        {
          member = "role:writer";
          role = "role:reader";
        }
      ];
      lifetime = 600;
    };
    idle = {
      runtimeRules = true;
      quotas.groupings = 20;
    };
  };
  services = {
    tokens = {
      host = "alpha";
      upstream = "unix:/run/florete-provider-token/token.sock";
      listenPort = 80;
      identity = "proxy-v2";
    };
    wiki = {
      user = "wiki-js";
      tokens.events = {
        tenant = "acme";
        requested = [ "stream.publish" ];
        resources = [ "stream:acme/payments/orders" ];
      };
    };
    broker = {
      host = "beta";
      port = 9100;
      visibility = "host";
      verifies = [ "acme" ];
    };
  };
  roles.reader.services = [ "tokens" ];
  providers.token = {
    hosts = [ "alpha" ];
    issuer = "http://tokens.golden.flor.rete";
  };
  providers.config.hosts = [ "alpha" ];
  providers.jwt = {
    hosts = [ "alpha" ];
    issuer = "https://svids.example.org";
  };
}
