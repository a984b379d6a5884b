# Lifetimes get shorter, secrets longer, and a title, the name of a role and addresses change:
# nobody may do more.
{ base, merge, ... }:
let
  before = merge base {
    services.postgres = {
      host = "alpha";
      port = 5432;
    };
    roles.reader.services = [
      "postgres"
      "wiki"
    ];
    hosts.beta.roles = [ "reader" ];
    services.wiki = {
      roles = [ "reader" ];
      accessLog = "full";
      databases.main = {
        on = "postgres";
        rotate = 30;
      };
    };
    secrets.session = {
      generate = "password";
      rotate = 30;
      readers = [ { service = "wiki"; } ];
    };
    providers.secret.hosts = [ "alpha" ];
    providers.database = {
      hosts = [ "alpha" ];
      servers.postgres.service = "postgres";
    };
    providers.federation.hosts = [ "alpha" ];
    providers.store = {
      kind = "etcd";
      hosts = [ "alpha" ];
      keyLifetime = 0;
    };
    providers.oidc.upstream.corp = {
      issuer = "https://login.example.org";
      clientId = "florete";
    };
  };
in
{
  inherit before;
  after = merge before {
    hosts.beta.roles = [ "visitor" ];
    roles.visitor.services = [
      "postgres"
      "wiki"
    ];
    services.wiki = {
      accessLog = "sampled";
      databases.main = {
        overlap = 1800;
        rotate = 7;
      };
    };
    secrets.session = {
      length = 64;
      overlap = 1800;
      rotate = 7;
    };
    providers.federation.refresh = 60;
    providers.store.keyLifetime = 30;
    providers.oidc.upstream.corp.title = "The company";
  };
}
