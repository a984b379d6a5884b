# Faults of issuers of others, at which people sign in or services are registered.
{ clean, lib }:
let
  inherit (builtins)
    attrNames
    filter
    map
    match
    ;
  inherit (lib) excluded fault when;
  inherit (clean.providers.oidc) ldap registration upstream;

  # Codes and clients' secrets go there.
  clear =
    issuer:
    match "https://.*" issuer == null
    && match "http://([^/?]*\\.rete|localhost|127\\.[0-9.]+|\\[::1])(:[0-9]+)?([/?].*)?" issuer == null;
in
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
