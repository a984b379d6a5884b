# A service gets a database, then it moves to another server, a second one is added, and data is
# dropped sooner.
{ base, merge, ... }:
let
  before = merge base {
    services.postgres = {
      host = "alpha";
      port = 5432;
    };
    roles.reader.services = [
      "wiki"
      "postgres"
    ];
    services.wiki = {
      roles = [ "reader" ];
      databases.main = {
        on = "postgres";
        rotate = 30;
      };
    };
    providers.database = {
      hosts = [ "alpha" ];
      servers.postgres.service = "postgres";
    };
  };
in
{
  inherit before;
  after = merge before {
    services.wiki.databases = {
      main.rotate = 0;
      sessions.on = "postgres";
    };
    providers.database.servers.postgres = {
      address = "127.0.0.1:5433";
      keep = 1;
    };
  };
}
