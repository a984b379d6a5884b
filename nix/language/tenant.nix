# The record of a tenant. It says which actions each member may perform on the tenant's objects.
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

  # check/tenantrules.nix verifies which tenant an object belongs to, and whether it exists.
  object = word {
    want = "an object of a tenant";
    hint = "write for example \"stream:acme/payments/orders\", \"stream:acme/payments/*\", \"namespace:acme/payments\" or \"tenant:acme\"";
    example = "stream:acme/payments/orders";
    re = "[a-z0-9*-]+(:[A-Za-z0-9._*-]+(/[A-Za-z0-9._*-]+){0,3})?";
    most = 300;
    invalid = wrong.string;
  };

  # The characters that a claim may contain if rules name it.
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
    namespaces = of "Namespaces of the tenant, which objects name." (
      listOf (word {
        want = "a namespace";
        hint = "use lower-case letters, digits and inner hyphens";
        re = label;
        invalid = wrong.string;
      })
    );
    issuers =
      of "OpenID Connect issuers whose tokens are exchanged for the tenant's, by the name that subjects use."
        (
          named { what = "issuer"; } (
            record "an issuer" {
              issuer = required "Claim `iss` of its tokens." "\"https://login.example.org\"" (
                url
                // {
                  invalid = wrong.string;
                }
              );
              audiences =
                required "Audiences: a token must be for one of them." "[ \"…\" ]"
                  (listOf string);
              subjectClaim = default "Claim with the subject." "sub" claimName;
              groupsClaim = of "Claim with the groups. By default there are none." claimName;
              discovery = of "URL below which the discovery document is. By default `issuer`." url;
              jwks = of "URL of its keys, for an issuer without a discovery document." url;
            }
          )
        );
    policies = of "Permissions of subjects." (
      listOf (
        record "a policy" {
          subject =
            required
              "Subject of the policy: `\"service/wiki\"`, `\"user/alice\"`, `\"node/forge\"`, `\"subject:<issuer>/<sub>\"`, `\"group:<issuer>/<group>\"` or `\"role:<name>\"`."
              "\"service/wiki\""
              subject;
          action = required "Action that the policy permits." "\"stream.publish\"" action;
          object =
            required
              "Object of the policy, with everything in it: `\"tenant:<t>\"`, `\"namespace:<t>/<n>\"`, `\"namespace:<t>/*\"`, `\"<kind>:<t>/<n>/<name>\"` or `\"<kind>:<t>/<n>/*\"`."
              "\"stream:<tenant>/<namespace>/<name>\""
              object;
        }
      )
    );
    groupings = of "Roles of subjects." (
      listOf (
        record "a grouping" {
          member =
            required
              "Subject that has the role, written as in policies. A role can have roles, too."
              "\"service/wiki\""
              subject;
          role = required "Role that the member has." "\"role:writer\"" role;
        }
      )
    );
    runtimeRules = of "Policies and groupings may also change at run time, by subjects that have the permissions `rbac.policy.manage` and `rbac.assignment.manage`." flag;
    lifetime = default "Lifetime of the tokens, in seconds." 900 (between 60 3600 "seconds");
    quotas = of "Upper bounds of the tenant." (
      record "quotas" {
        policies =
          default "Number of policies, those of run time included." 1000
            (between 0 10000 "a number");
        groupings =
          default "Number of groupings, those of run time included." 1000
            (between 0 10000 "a number");
        tokensPerMinute =
          default "Number of tokens that each provider host issues in a minute." 600
            (between 1 100000 "a number");
      }
    );
  };

  # A token of a service.
  token = record "a token" {
    tenant = required "Tenant of the token." "\"acme\"" (string // { invalid = wrong.string; });
    requested = of "Actions that the token permits. By default all that the policies permit the service." (listOf action);
    resources = of "Objects for which the token is good. By default all that the policies permit the service." (listOf object);
  };
}
