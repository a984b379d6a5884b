{ base, merge, ... }:
merge base {
  services.postgres = {
    host = "alpha";
    ports.postgres = 5432;
    ports.metrics = 9187;
  };
  roles.database.services = [ "postgres" ];
  providers.database = {
    hosts = [ "alpha" ];
    servers.postgres.service = "postgres";
  };
  services.wiki = {
    roles = [ "database" ];
    databases.main.on = "postgres";
  };
}
