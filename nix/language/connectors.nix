# The records of the sources of users besides the users file of providers.oidc: LDAP directories and
# other issuers.
let
  inherit (builtins) isString stringLength substring;
  inherit (import ./types)
    default
    named
    of
    record
    required
    scalar
    ;
  inherit (import ./formats)
    afterHost
    pem
    string
    strings
    url
    word
    ;

  some = word {
    want = "a string that is not empty";
    hint = "put it in double quotes";
    re = ".+";
  };
  titled = default "Text on its button. By default its name." "" string;
  roots =
    default
      "CA certificates that verify the server: a path, or PEM text. By default those of the system."
      ""
      pem;
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
          "Address of the server: `ldaps://`, or `ldap://` with StartTLS. On loopback `ldap://` is not encrypted."
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
        of "Distinguished name with which the provider searches. Its password is in the file `connector-<name>` beside the users file. By default the search is anonymous."
          string;
      people = required "People who can sign in." "{ base = \"ou=people,dc=example\"; }" (
        record "people" {
          base = required "Base of the search." "\"ou=people,dc=example\"" some;
          filter = of "Filter of the search, such as `(objectClass=person)`." string;
          login = default "Attribute with the login name." "uid" some;
          id =
            default "Attribute that identifies a person and is never given to another." "uid"
              some;
          email = default "Attribute with the mail address." "mail" some;
          name = default "Attribute with the full name." "cn" some;
        }
      );
      groups = of "Groups of the people, which tokens and `allowedGroups` use." (
        record "groups" {
          base = of "Base of the search. Without it nobody is in a group." string;
          filter = of "Filter of the search, such as `(objectClass=groupOfNames)`." string;
          person = default "Attribute of a person by which groups name members." "dn" some;
          member = default "Attribute of a group that names its members." "member" some;
          name = default "Attribute with the name of a group." "cn" some;
        }
      );
    }
  );

  upstream = connector "upstream issuer" (
    record "an upstream issuer" {
      title = titled;
      issuer =
        required "URL of the issuer, exactly as in its tokens." "\"https://login.example.org\""
          url;
      clientId =
        required
          "Client ID of the provider at that issuer, registered with the callback `<issuer>/callback`. Its secret is in the file `connector-<name>` beside the users file."
          "\"florete\""
          some;
      scopes =
        default
          "Scopes that are requested there besides openid. With `offline_access` services can get refresh tokens."
          [
            "profile"
            "email"
          ]
          strings;
      groups = of "Claim of its tokens with the groups, such as `\"groups\"`. Without it nobody is in a group." string;
      inherit roots;
    }
  );
}
