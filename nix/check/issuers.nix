# Faults of issuers: external ones, at which people sign in or services are registered, with what
# services require of them, and issuers whose pages a kind of provider serves.
{ clean, lib }:
let
  inherit (builtins)
    any
    attrNames
    concatStringsSep
    elem
    filter
    head
    match
    ;
  inherit (lib)
    answers
    excluded
    fault
    missing
    named
    serviceOf
    show
    when
    ;
  inherit (import ../language/formats) afterHost;
  inherit (clean.providers.oidc)
    issuer
    ldap
    registrar
    registration
    upstream
    ;

  inherit ((import ../lib/constants.nix).spiffe) suffix;

  # Codes and client secrets would cross the network unencrypted.
  clear =
    issuer:
    match "https://.*" issuer == null
    && match "http://([^/?]*\\${suffix}|localhost|127\\.[0-9.]+|\\[::1])(:[0-9]+)?([/?].*)?" issuer == null;
in
{
  top =
    when (registration != "" && (ldap != { } || upstream != { })) (
      excluded "take one of them out: an issuer of others has its own people"
        "providers.oidc.registration"
        "ldap or upstream"
    )
    ++ when (registration != "" && clear registration) [
      (fault {
        id = "FL104";
        place = "providers.oidc.registration";
        problem = "clients' secrets would cross the network in clear, at";
        value = registration;
        remedy = "write its https:// address, or one below .rete";
      })
    ]
    ++ map (
      n:
      fault {
        id = "FL103";
        place = "providers.oidc.upstream.${n}";
        problem = "the name is taken by";
        value = "providers.oidc.ldap.${n}";
        remedy = "choose another name for one of them";
      }
    ) (filter (n: ldap ? ${n}) (attrNames upstream))
    ++ map (
      n:
      fault {
        id = "FL104";
        place = "providers.oidc.upstream.${n}.issuer";
        problem = "codes and the client's secret would cross the network in clear, at";
        value = upstream.${n}.issuer;
        remedy = "write its https:// address, or one below .rete";
      }
    ) (filter (n: upstream.${n}.issuer != "" && clear upstream.${n}.issuer) (attrNames upstream))
    ++ when (issuer != "" && registration == "" && afterHost issuer != "") [
      (fault {
        id = "FL145";
        place = "providers.oidc.issuer";
        problem = "the pages here are at a host, with nothing after it, not at";
        value = issuer;
        remedy = "write the address without what follows the host, or registration for an issuer of others";
      })
    ]
    ++ when (registration != "" && match "[^?]*" issuer == null) [
      (fault {
        id = "FL145";
        place = "providers.oidc.issuer";
        problem = "an issuer has no query (OpenID Connect Discovery 1.0 section 2):";
        value = issuer;
        remedy = "write what its discovery document has as issuer";
      })
    ]
    ++ when (registration == "" && registrar != "rfc7591") (
      missing "providers.oidc" "registration"
        "write registration = \"https://…\"; with the address of the issuer, whose API registers clients"
    );

  # Faults of the service that publishes the pages of an issuer. `leads` says to which port it must
  # lead.
  # pages :: { kind, leads, t } -> [Fault]
  pages =
    {
      kind,
      leads,
      t,
    }:
    let
      provider = clean.providers.${kind};
      place = "providers.${kind}.issuer";
      publishing = serviceOf provider.issuer;

      # The provider serves its pages on its own host, unless a proxy connects to it.
      away =
        let
          service = t.services.${publishing};
        in
        when
          (
            publishing != null
            && t.services ? ${publishing}
            && service.hosts != [ ]
            && clean.services.${publishing}.upstream == ""
            && provider.hosts != [ ]
            && !any (h: elem h provider.hosts) service.hosts
          )
          [
            (fault {
              id = "FL028";
              place = "services.${publishing}";
              problem = "the pages of the issuer are where providers.${kind} is, not on";
              value = concatStringsSep ", " service.hosts;
              remedy = "write services.${publishing}.host = ${show (head provider.hosts)};";
            })
          ];
    in
    map (
      f:
      f
      // {
        remedy = "declare the pages of the issuer, services.${publishing} = { host = ${
          show (head (provider.hosts ++ [ "…" ]))
        }; ${leads} listenPort = ${
          if match "https.*" provider.issuer == null then "80" else "443"
        }; };";
      }
    ) (named place provider.issuer)
    ++ answers place provider.issuer
    ++ away;

  # service :: String -> Service -> [Fault]
  service =
    n: s:
    let
      lacks =
        server: what: problem:
        when (s.sso.${what} != [ ] && registrar == server) [
          (fault {
            id = "FL145";
            place = "services.${n}.sso.${what}";
            inherit problem;
            value = concatStringsSep ", " s.sso.${what};
            remedy = "take ${what} out";
          })
        ];
    in
    when (s.sso.allowedGroups != [ ] && registration != "" && registrar == "rfc7591") [
      (fault {
        id = "FL102";
        place = "services.${n}.sso.allowedGroups";
        problem = "RFC 7591 knows no groups, and the issuer would let all people sign in, not these alone:";
        value = concatStringsSep ", " s.sso.allowedGroups;
        remedy = "take allowedGroups out, and let the issuer decide who may sign in";
      })
    ]
    ++ lacks "pocket-id" "scopes" "Pocket ID lets every client have all scopes, not these alone:"
    ++ lacks "kanidm" "postLogoutRedirectURIs" "Kanidm leads nobody back who signs out:";
}
