{ base, merge, ... }:
merge base {
  services.postgres = {
    host = "alpha";
    port = 5432;
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
