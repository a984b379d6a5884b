# An unknown server, names that are too long or reserved by PostgreSQL, and a server on another
# host.
{ base, merge, ... }:
merge base {
  services.postgres = {
    host = "alpha";
    port = 5432;
  };
  roles.database.services = [ "postgres" ];
  providers.database = {
    hosts = [ "alpha" ];
    servers = {
      postgres.service = "postgres";
      far.service = "far";
      nowhere.service = "nowhere";
      open = {
        service = "postgres";
        address = "192.0.2.7:5432";
      };
    };
  };
  services.far = {
    host = "beta";
    port = 5432;
  };
  services.wiki = {
    roles = [ "database" ];
    databases = {
      main.on = "postgre";
      none = { };
      a-name-that-is-as-long-as-a-database-of-wiki-may-be.on = "postgres";
      a-name-that-is-as-long-as-a-database-of-wiki-maybe.on = "postgres";
    };
  };
  services.pg = {
    host = "alpha";
    port = 9100;
    roles = [ "database" ];
    databases.main.on = "postgres";
  };
}
