# The records of the clients of an issuer: the sign-in settings of a service, and the clients of
# other clusters.
let
  inherit (builtins) stringLength;
  inherit (import ./types)
    atMost
    between
    default
    enum
    listOf
    matches
    named
    of
    oneOrMore
    record
    required
    scalar
    ;
  inherit (import ./formats)
    flag
    forwarderAddress
    serviceName
    sshKey
    string
    strings
    unit
    url
    word
    ;

  group = word {
    want = "the name of a group, at most 128 characters";
    hint = "put it in double quotes";
    re = "[^[:cntrl:]]+";
    most = 128;
  };
  # Claims that say whom a token is about and for whom it is (RFC 7519, OpenID Connect Core 1.0).
  protocol = [
    "acr"
    "amr"
    "at_hash"
    "aud"
    "auth_time"
    "azp"
    "c_hash"
    "cnf"
    "exp"
    "federated_claims"
    "iat"
    "iss"
    "jti"
    "nbf"
    "nonce"
    "s_hash"
    "sid"
    "sub"
  ];
  # The attributes of a client that the issuer knows.
  client = {
    redirectURIs = of "Callback URLs of the client." (atMost 32 url);
    postLogoutRedirectURIs = of "URLs to which signing out may lead." (atMost 8 url);
    scopes =
      of
        "Scopes that the client may request besides openid. By default email, groups, offline_access and profile. At the issuer of the cluster, a scope of another name stands for what `claims` and `groups` are made from."
        (
          listOf (scalar {
            want = "a scope besides openid, of letters, digits and . _ : / -";
            hint = "write for example \"offline_access\"";
            example = "offline_access";
            ok = v: v != "openid" && matches "[A-Za-z0-9._:/-]+" v && stringLength v <= 128;
          })
        );
    claims =
      of
        "Further claims in the tokens of the client: the name that the service reads, and the claim that its value comes from. A service gets a claim if it may read the one that it comes from."
        (
          named {
            what = "claim";
            max = 128;
            re = "[A-Za-z0-9_.:/#-]+";
            remedy = "use at most 128 letters, digits and . _ : / # -";
            reserved = protocol ++ [
              "email"
              "email_verified"
              "groups"
            ];
          } (enum [
            "email"
            "groups"
            "name"
            "preferred_username"
            "sub"
          ])
        );
    groups =
      of
        "Groups under the names that the service knows: the name, and the groups whose people have it. The service then sees no other groups. `allowedGroups` has the names of the issuer."
        (
          named {
            what = "group";
            max = 128;
            re = "[ -+.-~-]+";
            remedy = "use at most 128 ASCII characters, without commas";
          } (atMost 32 group)
        );
    allowedGroups = of "Groups whose people get tokens, or pass the gate. By default everybody does." (
      atMost 32 group
    );
    public = of "The client is an app or a page that cannot keep a secret. It has none and must use PKCE." flag;
  };
in
{
  sso = record "sso" (client // {
    mode = of "`oidc`: the host fetches the credentials of an OpenID Connect client. `gate`: an ingress requires strangers to sign in, for services without a sign-in of their own. Inside the cluster, only users reach the service then." (enum [
      "none"
      "oidc"
      "gate"
    ]);
    session =
      default
        "Hours after which people sign in again, with `mode = \"gate\"`. By default 12. At an issuer of others, a session also ends with its ID token."
        null
        (between 1 720 "hours");
    restart = of "Unit to restart after the credentials changed." unit;
    called =
      of
        "Service name by which the issuer knows the client. By default the name of the service. Write the former name before you rename a service, so that its client stays."
        serviceName;
    generation =
      default
        "Raise it when the client secret may be known to others. The host requests another one, which ends the old one."
        1
        (between 1 1000000 "a generation");
    rotate =
      default
        "Days after which the host requests another client secret. The old one ends 15 minutes later. 0 means never."
        0
        (between 0 3650 "days");
    dependsOn = of "Needs of this host that must be fulfilled first." strings;
    cluster = of "Other cluster in `clusters`, at whose issuer people sign in. That cluster must declare the same client in `clients`. By default the issuer of this cluster." string;
  });

  # The issuer of another cluster.
  issuer = record "the issuer of another cluster" {
    issuer =
      required "URL of the issuer, as in `providers.oidc` of the other cluster."
        "\"https://auth.example.org\""
        url;
    hosts =
      required
        "Hosts of the other cluster that provide `oidc`, with the addresses and ports of these providers."
        "{ forge = \"192.0.2.1:4603\"; }"
        (
          named { what = "host"; } (oneOrMore forwarderAddress)
        );
  };

  # A client of another cluster at the issuer of this one.
  elsewhere = record "a client of another cluster" (
    client
    // {
      nodes =
        required
          "Hosts of the other cluster whose nodes may fetch the client, with their public SSH host keys, which prove the requests."
          "{ forge = \"ssh-ed25519 …\"; }"
          (named { what = "host"; } sshKey);
      generation = default "Generation of the client secret, as in the other cluster." 1 (
        between 1 1000000 "a generation"
      );
    }
  );
}
