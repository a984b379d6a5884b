# The host has the role.
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
  services.wiki.databases.main.on = "postgres";
  hosts.beta.roles = [ "database" ];
}
