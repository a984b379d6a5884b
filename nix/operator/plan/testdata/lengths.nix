# Lifetimes get longer, and logs contain more.
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
    services.wiki = {
      roles = [ "reader" ];
      accessLog = "sampled";
      databases.main.on = "postgres";
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
    providers.federation = {
      hosts = [ "alpha" ];
      refresh = 300;
    };
    providers.store = {
      kind = "etcd";
      hosts = [ "alpha" ];
      keyLifetime = 90;
    };
  };
in
{
  inherit before;
  after = merge before {
    services.wiki = {
      accessLog = "full";
      databases.main.overlap = 43200;
    };
    secrets.session.length = 18;
    providers.federation.refresh = 86400;
    providers.store.keyLifetime = 0;
  };
}
