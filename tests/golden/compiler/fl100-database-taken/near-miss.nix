# The same name at two servers.
{ base, merge, ... }:
merge base {
  services.postgres = {
    host = "alpha";
    port = 5432;
  };
  services.cache = {
    host = "alpha";
    port = 6379;
  };
  roles.database.services = [
    "postgres"
    "cache"
  ];
  providers.database = {
    hosts = [ "alpha" ];
    servers = {
      postgres.service = "postgres";
      cache = {
        kind = "redis";
        service = "cache";
      };
    };
  };
  services.ci = {
    host = "alpha";
    port = 9100;
    roles = [ "database" ];
    databases.job-queue.on = "postgres";
  };
  services.ci-job = {
    host = "beta";
    port = 9101;
    roles = [ "database" ];
    databases.queue.on = "cache";
  };
}
