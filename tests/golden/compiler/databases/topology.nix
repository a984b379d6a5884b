# Databases at servers of both kinds, of a service on one host and of one on several.
{ base, merge, ... }:
merge base {
  services = {
    postgres = {
      host = "alpha";
      port = 5432;
      visibility = "cluster";
    };
    cache = {
      host = "alpha";
      port = 6379;
      scope = "node";
    };
    wiki = {
      user = "wiki-js";
      roles = [ "database" ];
      databases = {
        main = {
          on = "postgres";
          restart = "wiki.service";
          rotate = 30;
          dependsOn = [ "cert-node" ];
        };
        pages = {
          on = "postgres";
          called = "docs_pages"; # from the former name of the service
        };
        sessions = {
          on = "cache";
          overlap = 600;
          generation = 2;
        };
      };
    };
    ci-runner = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 9100;
      visibility = "host";
      user = "ci";
      roles = [ "database" ];
      databases.job-queue.on = "postgres";
    };
  };
  roles.database.services = [
    "postgres"
    "cache"
  ];
  providers.database = {
    hosts = [ "alpha" ];
    servers = {
      postgres = {
        service = "postgres";
        address = "unix:/run/postgresql/.s.PGSQL.5432";
        user = "florete-provider-database";
        keep = 90;
      };
      cache = {
        kind = "redis";
        service = "cache";
      };
    };
  };
}
