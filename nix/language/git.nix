# The records of git forges, and of the tokens that services have at them.
let
  inherit (import ./types)
    between
    default
    enum
    listOf
    of
    record
    required
    ;
  inherit (import ./formats)
    local
    strings
    unit
    word
    ;
  wrong = (import ../lib).invalid;

  named =
    what:
    word {
      want = "the name of a ${what}";
      hint = "write for example \"forge\"";
      re = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
      most = 63;
      invalid = wrong.string;
    };
in
{
  forge = record "a forge" {
    kind = of "Type of the forge. `forgejo` includes Gitea." (enum [
      "soft-serve"
      "forgejo"
    ]);
    service =
      required "Service of the cluster by which others reach the forge over HTTP." "\"forge\""
        (named "service");
    address =
      of
        "Where the provider reaches the forge on its own host, a loopback address with a port: for `soft-serve` by SSH, by default 127.0.0.1:23231; for `forgejo` by HTTP, by default where the service listens."
        local;
    user = default "Account of the provider at the forge, an administrator." "florete" (word {
      want = "the name of an account";
      hint = "write for example \"florete\"";
      re = "[A-Za-z][A-Za-z0-9_.-]*";
      most = 40;
    });
  };

  token = record "a token of a forge" {
    on = required "Forge, one of `providers.git.forges`." "\"forge\"" (named "forge");
    repositories = required "Repositories, as the forge names them." "[ \"infra\" ]" (
      listOf (word {
        want = "the path of a repository";
        hint = "write for example \"infra\" or \"ops/infra\", without .git";
        re = "[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*";
        most = 200;
      })
    );
    called =
      of
        "Name of its account at the forge. By default `florete-<service>-<token>`. Write the former name before you rename a service, so that its account stays."
        (word {
          want = "the name of an account that begins with florete-, of lower-case letters, digits and single hyphens";
          hint = "write for example \"florete-wiki-pages\"";
          example = "florete-wiki-pages";
          re = "florete(-[a-z0-9]+)+";
          most = 40;
        });
    access = of "What the token permits. `write` permits to push, too." (enum [
      "read"
      "write"
    ]);
    lifetime =
      default
        "Hours after which the token ends. The next one exists after two thirds of them, and hosts ask four times in the last third."
        168
        (between 1 8760 "hours");
    restart = of "Unit to restart after the token was replaced." unit;
    generation =
      default
        "Raise it when the token may be known to others. Hosts get another one, and the former ends within a twelfth of its lifetime."
        1
        (between 1 1000000 "a generation");
    dependsOn = of "Needs of its hosts that must be fulfilled first." strings;
  };
}
