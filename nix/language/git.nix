# Records of forges, and of tokens that services need there.
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
    kind = of "what it is; `forgejo` is Gitea, too" (enum [
      "soft-serve"
      "forgejo"
    ]);
    service =
      required "service of the cluster that it is, by which others reach it, with HTTP" "\"forge\""
        (named "service");
    address =
      of
        "where the provider reaches it, on its own host, at a loopback address with port: by SSH for `soft-serve`, 127.0.0.1:23231 unless written; by HTTP for `forgejo`, where the service listens, unless written"
        local;
    user = default "who the provider is there, an administrator" "florete" (word {
      want = "the name of an account";
      hint = "write for example \"florete\"";
      re = "[A-Za-z][A-Za-z0-9_.-]*";
      most = 40;
    });
  };

  token = record "a token of a forge" {
    on = required "forge that it is for, of `providers.git.forges`" "\"forge\"" (named "forge");
    repositories = required "which repositories it is for, as the forge calls them" "[ \"infra\" ]" (
      listOf (word {
        want = "the path of a repository";
        hint = "write for example \"infra\" or \"ops/infra\", without .git";
        re = "[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*";
        most = 200;
      })
    );
    access = of "what it may do there; `write` is to push, too" (enum [
      "read"
      "write"
    ]);
    lifetime =
      default
        "hours after which it ends; another one is there after two thirds of them, and hosts request four times in the last"
        168
        (between 1 8760 "hours");
    restart = of "unit to restart when it was replaced" unit;
    generation =
      default
        "raised when it may be known to others: hosts get another one, and the former ends in a twelfth of its lifetime"
        1
        (between 1 1000000 "a generation");
    dependsOn = of "needs of its hosts that must be fulfilled first" strings;
  };
}
