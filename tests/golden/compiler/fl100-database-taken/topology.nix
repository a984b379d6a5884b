# Two services whose databases would have the same name.
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
  services.ci = {
    host = "alpha";
    port = 9100;
    roles = [ "database" ];
    databases.job-queue.on = "postgres";
  };
  services.ci-job = {
    host = "alpha";
    port = 9101;
    roles = [ "database" ];
    databases.queue.on = "postgres";
  };
}
