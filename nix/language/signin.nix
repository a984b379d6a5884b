# Where people sign in besides the users file of providers.oidc, and what services write of how
# their users do.
let
  inherit (builtins) isString stringLength substring;
  inherit (import ./types)
    atMost
    between
    default
    enum
    listOf
    named
    of
    record
    required
    scalar
    ;
  inherit (import ./formats)
    flag
    pem
    string
    strings
    unit
    url
    word
    ;
  inherit (import ./formats) afterHost;

  some = word {
    want = "a string that is not empty";
    hint = "put it in double quotes";
    re = ".+";
  };
  titled = default "what people read on its button; its name unless written" "" string;
  roots = default "CA certificates of it, a path or PEM text; those of the system unless written" "" pem;
  connector = what: named {
    inherit what;
    max = 40;
    reserved = [ "local" ];
  };
in
{
  ldap = connector "directory" (
    record "a directory" {
      title = titled;
      server =
        required
          "its address, `ldaps://`, or `ldap://` with StartTLS, which is plain on loopback alone"
          "\"ldaps://ldap.example.org\""
          (scalar {
            want = "ldaps://host[:port] or ldap://host[:port]";
            hint = "write for example \"ldaps://ldap.example.org\"";
            example = "ldaps://ldap.example.org";
            ok =
              v:
              isString v && substring 0 4 v == "ldap" && afterHost ("http" + substring 4 (stringLength v) v) == "";
          });
      inherit roots;
      bindDN =
        of "whom the provider searches as, by the password in the file `connector-<name>` beside the users file; nobody unless written"
          string;
      people = required "those who can sign in" "{ base = \"ou=people,dc=example\"; }" (
        record "people" {
          base = required "where they are" "\"ou=people,dc=example\"" some;
          filter = of "which of those, `(objectClass=person)`" string;
          login = default "attribute that they sign in with" "uid" some;
          id = default "attribute that never becomes another's" "uid" some;
          email = default "attribute with the address" "mail" some;
          name = default "attribute with the name for people" "cn" some;
        }
      );
      groups = of "their groups, which tokens and `allowedGroups` have" (
        record "groups" {
          base = of "where they are; without it nobody is in any" string;
          filter = of "which of those, `(objectClass=groupOfNames)`" string;
          person = default "attribute of people that groups name them by" "dn" some;
          member = default "attribute of groups that names them" "member" some;
          name = default "attribute with a group's name" "cn" some;
        }
      );
    }
  );

  upstream = connector "upstream issuer" (
    record "an upstream issuer" {
      title = titled;
      issuer = required "its address, as its tokens have it" "\"https://login.example.org\"" url;
      clientId =
        required "as which the provider is registered there, with the callback `<issuer>/callback`; the secret is in the file `connector-<name>` beside the users file"
          "\"florete\""
          some;
      scopes =
        default "that are requested there, besides openid; services get refresh tokens where it knows `offline_access`"
          [
            "profile"
            "email"
          ]
          strings;
      groups = of "claim of its tokens with the groups, `\"groups\"`; without it nobody is in any" string;
      inherit roots;
    }
  );

  sso = record "sso" {
    mode = of "`oidc`: the host fetches a client's credentials" (enum [
      "none"
      "oidc"
    ]);
    restart = of "unit to restart when they change" unit;
    redirectURIs = of "its callbacks" (atMost 32 url);
    postLogoutRedirectURIs = of "where signing out may lead" (atMost 8 url);
    scopes = of "that it may request besides openid; all of them unless written" (
      listOf (enum [
        "email"
        "groups"
        "offline_access"
        "profile"
      ])
    );
    allowedGroups = of "only people in one of these groups get tokens; all people unless written" (
      atMost 32 (word {
        want = "the name of a group, at most 128 characters";
        hint = "put it in double quotes";
        re = "[^[:cntrl:]]+";
        most = 128;
      })
    );
    public = of "an app or a page, which keeps no secret and has none: it must use PKCE" flag;
    generation =
      default "raised when the secret may be known to others: the host gets another, and the old one ends"
        1
        (between 1 1000000 "a generation");
    rotate =
      default
        "days after which the host requests another secret; the old one ends a quarter of an hour later; never, unless written"
        0
        (between 0 3650 "days");
    dependsOn = of "needs of this host that must be fulfilled first" strings;
  };
}
