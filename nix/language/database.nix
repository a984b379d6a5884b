# Records of database servers, and of databases that services need there.
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
    kind = of "what it is; `redis` is Valkey, too" (enum [
      "postgres"
      "redis"
    ]);
    service = required "service of the cluster that it is, by which others reach it" "\"postgres\"" (
      named "service"
    );
    address =
      of
        "where the provider reaches it, on its own host: `unix:/path`, or a loopback address with port; where the service listens, unless written"
        localOrSocket;
    user =
      default "the provider's own login there, which makes databases and logins" "florete"
        (word {
          want = "the name of a role or user";
          hint = "write for example \"florete\"";
          example = "florete";
          re = "[A-Za-z_][A-Za-z0-9_.-]*";
          most = 63;
        });
    keep =
      default
        "days for which a database that the topology names no more is kept, closed to all, before it is dropped with its data"
        30
        (between 1 3650 "days");
  };

  database = record "a database" {
    on = required "server that it is at, of `providers.database.servers`" "\"postgres\"" (
      named "database server"
    );
    called =
      of
        "what it is called at its server, `<service>_<database>` unless written: it keeps its data when the service is renamed, and this names what it was"
        (word {
          want = "the name of a database";
          hint = "use a lower-case letter, then those, digits and _";
          example = "wiki_main";
          re = "[a-z][a-z0-9_]*";
          most = 54;
        });
    restart = of "unit to restart when its login was replaced" unit;
    rotate = default "days after which its login is replaced; never, unless written" 0 (
      between 0 3650 "days"
    );
    overlap =
      default "seconds for which the former login works beside the next one; hosts fetch four times in it"
        3600
        (between 60 43200 "seconds");
    generation =
      default "raised when its password may be known to others: hosts get another login, and the old one ends"
        1
        (between 1 1000000 "a generation");
    dependsOn = of "needs of its hosts that must be fulfilled first" strings;
  };
}
