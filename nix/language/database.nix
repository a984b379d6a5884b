# The records of database servers, and of the databases of services.
let
  inherit (import ./types)
    between
    default
    enum
    of
    record
    required
    ;
  inherit (import ./formats)
    localOrSocket
    strings
    unit
    word
    ;
  wrong = (import ../lib).invalid;

  named =
    what:
    word {
      want = "the name of a ${what}";
      hint = "write for example \"postgres\"";
      example = "postgres";
      re = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
      most = 63;
      invalid = wrong.string;
    };
in
{
  server = record "a database server" {
    kind = of "Type of the server. `redis` includes Valkey." (enum [
      "postgres"
      "redis"
    ]);
    service = required "Service of the cluster by which others reach the server." "\"postgres\"" (
      named "service"
    );
    address =
      of
        "Where the provider reaches the server on its own host: `unix:/path`, or a loopback address with a port. By default where the service listens."
        localOrSocket;
    user =
      default
        "Login of the provider at the server, with which it makes databases and logins."
        "florete"
        (word {
          want = "the name of a role or user";
          hint = "write for example \"florete\"";
          example = "florete";
          re = "[A-Za-z_][A-Za-z0-9_.-]*";
          most = 63;
        });
    keep =
      default
        "Days for which a database that the topology no longer names is kept, closed to everybody, before it is dropped with its data."
        30
        (between 1 3650 "days");
  };

  database = record "a database" {
    on = required "Database server, one of `providers.database.servers`." "\"postgres\"" (
      named "database server"
    );
    called =
      of
        "Name of the database at its server. By default `<service>_<database>`. Write the former name before you rename a service, so that it keeps its data."
        (word {
          want = "the name of a database";
          hint = "use a lower-case letter, then those, digits and _";
          example = "wiki_main";
          re = "[a-z][a-z0-9_]*";
          most = 54;
        });
    restart = of "Unit to restart after its login was replaced." unit;
    rotate = default "Days after which its login is replaced. 0 means never." 0 (
      between 0 3650 "days"
    );
    overlap =
      default
        "Seconds for which the former login works beside the next one. Hosts fetch four times in it."
        3600
        (between 60 43200 "seconds");
    generation =
      default
        "Raise it when the password may be known to others. Hosts get another login, and the old one ends after `overlap`."
        1
        (between 1 1000000 "a generation");
    dependsOn = of "Needs of its hosts that must be fulfilled first." strings;
  };
}
