# The record of a tenant: who may do what with things that are its alone.
let
  inherit (builtins) stringLength;
  inherit (import ./types)
    between
    default
    listOf
    matches
    named
    of
    record
    required
    scalar
    ;
  inherit (import ./formats)
    flag
    issuer
    string
    url
    word
    ;
  wrong = (import ../lib).invalid;

  label = (import ../lib/constants.nix).spiffe.labelPattern;

  action = word {
    want = "an action: words with dots between them, and no *";
    hint = "write for example \"stream.publish\"";
    example = "stream.publish";
    re = "[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*){0,3}";
    most = 64;
    invalid = wrong.string;
  };

  # Of which tenant, and whether that has it, is checked where tenants are known.
  object = word {
    want = "an object of a tenant";
    hint = "write for example \"stream:acme/payments/orders\", \"stream:acme/payments/*\", \"namespace:acme/payments\" or \"tenant:acme\"";
    example = "stream:acme/payments/orders";
    re = "[a-z0-9*-]+(:[A-Za-z0-9._*-]+(/[A-Za-z0-9._*-]+){0,3})?";
    most = 300;
    invalid = wrong.string;
  };

  # What a claim can have that rules name.
  claim = "[]!#-&(-+.-Z\\^-~[\\-]{1,255}";
  subject = word {
    want = "a subject: an identity of the cluster, subject:ISSUER/SUB, group:ISSUER/GROUP or role:NAME";
    hint = "write for example \"service/wiki\", \"group:corp/devs\" or \"role:writer\"";
    example = "service/wiki";
    re = "(node|user|service)/${label}|service/${label}/${label}|role:${label}|(subject|group):${label}/${claim}";
    invalid = wrong.string;
  };

  role = word {
    want = "a role of a tenant";
    hint = "write for example \"role:writer\"";
    example = "role:writer";
    re = "role:${label}";
    invalid = wrong.string;
  };

  claimName = scalar {
    want = "the name of a claim";
    hint = "write for example \"groups\"";
    example = "groups";
    ok = v: matches "[A-Za-z0-9_.:/-]*" v && stringLength v <= 100;
  };
in
{
  inherit action object;

  type = record "a tenant" {
    namespaces = of "what its things are in; objects name them" (
      listOf (word {
        want = "a namespace";
        hint = "use lower-case letters, digits and inner hyphens";
        re = label;
        invalid = wrong.string;
      })
    );
    issuers =
      of "whose tokens (OpenID Connect) are exchanged for the tenant's, by the name that subjects have"
        (
          named { what = "issuer"; } (
            record "an issuer" {
              issuer = required "claim `iss` of its tokens" "\"https://login.example.org\"" (
                url
                // {
                  invalid = wrong.string;
                }
              );
              audiences = required "its tokens must be for one of these" "[ \"…\" ]" (listOf string);
              subjectClaim = default "claim that has the subject" "sub" claimName;
              groupsClaim = of "claim that has groups; none unless written" claimName;
              discovery = of "below which its discovery document is, where that is not below `issuer`" url;
              jwks = of "where its keys are, where it has no discovery document" url;
            }
          )
        );
    policies = of "who is permitted what" (
      listOf (
        record "a policy" {
          subject = required "who is: `\"service/wiki\"`, `\"user/alice\"`, `\"node/forge\"`, `\"subject:<issuer>/<sub>\"`, `\"group:<issuer>/<group>\"` or `\"role:<name>\"`" "\"service/wiki\"" subject;
          action = required "one action" "\"stream.publish\"" action;
          object =
            required
              "on what, with all in it: `\"tenant:<t>\"`, `\"namespace:<t>/<n>\"`, `\"namespace:<t>/*\"`, `\"<kind>:<t>/<n>/<name>\"` or `\"<kind>:<t>/<n>/*\"`"
              "\"stream:<tenant>/<namespace>/<name>\""
              object;
        }
      )
    );
    groupings = of "who has which role" (
      listOf (
        record "a grouping" {
          member = required "who, as in policies; a role has roles, too" "\"service/wiki\"" subject;
          role = required "has this one" "\"role:writer\"" role;
        }
      )
    );
    runtimeRules = of "its policies and groupings change at run time, too, by whom it permits `rbac.policy.manage` and `rbac.assignment.manage`" flag;
    lifetime = default "seconds that its tokens live" 900 (between 60 3600 "seconds");
    quotas = of "what it may have at most" (
      record "quotas" {
        policies = default "how many policies, those of run time included" 1000 (between 0 10000 "a number");
        groupings = default "how many groupings, likewise" 1000 (between 0 10000 "a number");
        tokensPerMinute = default "how many tokens are issued in a minute, by each provider host" 600 (
          between 1 100000 "a number"
        );
      }
    );
  };

  # Of a service.
  token = record "a token" {
    tenant = required "whose it is" "\"acme\"" (string // { invalid = wrong.string; });
    requested = of "actions; all that it is permitted, unless written" (listOf action);
    resources = of "objects; likewise" (listOf object);
  };
}
