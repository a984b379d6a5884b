# JWT-SVIDs (SPIFFE JWT-SVID) of services, for peers that do not accept certificates.
let
  inherit (builtins)
    any
    attrValues
    elem
    filter
    ;
  inherit (import ../language/types)
    atMost
    between
    default
    of
    required
    ;
  inherit (import ../language/formats) issuer word;
  inherit (import ../lib) isInvalid sorted when;

  # RFC 7519, section 4.1.3.
  audience = word {
    want = "whom a token is for, as that knows itself: a URI or a word of at most 255 characters";
    hint = "write for example \"https://vault.example.org\"";
    example = "https://vault.example.org";
    re = "[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+";
    most = 255;
  };

  # Wrong values have been reported.
  wanting = filter (s: s.jwtAudiences != [ ] && any (a: a != "" && !isInvalid a) s.jwtAudiences);
in
{
  doc = "Issues JWT-SVIDs, the tokens of services.";
  port = 4;
  alone = "each would sign with keys of its own, and the pages of the issuer have those of one";
  settings = {
    issuer =
      required "URL of the issuer, from which others fetch the keys that verify tokens."
        "\"https://tokens.example.org\""
        issuer;
    generation =
      default
        "Raise it when a signing key may be known to others. All tokens end, and hosts get new ones."
        1
        (between 1 1000000 "a generation");
  };
  policy = t: { inherit (t.providers.jwt) issuer generation; };

  service.jwtAudiences =
    of
      "Audiences for each of which the service has a JWT-SVID in the SPIFFE Workload API. Needs `workloadApi` and `providers.jwt`."
      (atMost 16 audience);

  reasons =
    clean: map (s: "services.${s.name}.jwtAudiences needs it") (wanting (attrValues clean.services));

  needs =
    t: host:
    let
      inherit (t.providers.jwt) issuer;
      renew.atPercent = 50;
      tokens = name: id: s: {
        id = "jwt-${name}";
        for = id;
        request = {
          inherit id issuer;
          audiences = sorted s.jwtAudiences;
        };
        files."tokens.json" = {
          value = "tokens";
          mode = "0400";
        };
        inherit renew;
      };
    in
    # Keys for hosts that verify or exchange JWT-SVIDs, or serve the bundle.
    when
      (
        t.providers.jwt.hosts != [ ]
        && (
          any (s: s.workloadApi) host.running || elem "federation" host.kinds || elem "token" host.kinds
        )
      )
      [
        {
          id = "jwt-keys";
          for = host.id;
          request = { inherit issuer; };
          files."jwks.json" = {
            value = "jwks";
            mode = "0444";
          };
          inherit renew;
        }
      ]
    ++ map (s: tokens "service-${s.name}" (s.idOn host.name) s) (wanting host.wanting)
    ++ map (s: tokens "shared-${s.name}" s.shared s) (filter (s: s.scope == "both") (wanting host.wanting));

  check =
    {
      clean,
      t,
      lib,
      ...
    }:
    {
      top = import ../check/issuerpages.nix { inherit clean lib; } {
        kind = "jwt";
        leads = "port = 5557;";
        inherit t;
      };
      service =
        n: s:
        if s.jwtAudiences == [ ] || s.workloadApi then
          [ ]
        else
          lib.excluded "write workloadApi = true;, or take them out" "services.${n}.jwtAudiences"
            "workloadApi = false";
    };
}
