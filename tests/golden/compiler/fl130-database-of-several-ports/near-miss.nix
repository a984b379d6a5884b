{ base, merge, ... }:
merge base {
  services.postgres = {
    host = "alpha";
    port = 5432;
  };
  services.postgres-metrics = {
    host = "alpha";
    port = 9187;
  };
  roles.database.services = [
    "postgres"
    "postgres-metrics"
  ];
  providers.database = {
    hosts = [ "alpha" ];
    servers.postgres.service = "postgres";
  };
  services.wiki = {
    roles = [ "database" ];
    databases.main.on = "postgres";
  };
}
