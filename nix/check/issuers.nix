# Faults of issuers of others, at which people sign in or services are registered, and of what
# services want of the one they sign in at.
{ clean, lib }:
let
  inherit (builtins)
    attrNames
    concatStringsSep
    filter
    map
    match
    ;
  inherit (lib)
    excluded
    fault
    missing
    when
    ;
  inherit (import ../language/formats/addressform.nix) afterHost;
  inherit (clean.providers.oidc)
    issuer
    ldap
    registrar
    registration
    upstream
    ;

  inherit ((import ../lib/constants.nix).spiffe) suffix;

  # Codes and clients' secrets go there.
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
