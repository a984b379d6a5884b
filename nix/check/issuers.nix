# Faults of external issuers, at which people sign in or services are registered, with what services
# require of them.
{ clean, lib }:
let
  inherit (builtins)
    attrNames
    concatStringsSep
    elem
    filter
    head
    match
    ;
  inherit (lib)
    excluded
    fault
    faultIf
    missing
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
    ++ faultIf (registration != "" && clear registration) {
      id = "FL104";
      place = "providers.oidc.registration";
      problem = "clients' secrets would cross the network in clear, at";
      value = registration;
      remedy = "write its https:// address, or one below .rete";
    }
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
    ++ faultIf (issuer != "" && registration == "" && afterHost issuer != "") {
      id = "FL145";
      place = "providers.oidc.issuer";
      problem = "the pages here are at a host, with nothing after it, not at";
      value = issuer;
      remedy = "write the address without what follows the host, or registration for an issuer of others";
    }
    ++ faultIf (registration != "" && match "[^?]*" issuer == null) {
      id = "FL145";
      place = "providers.oidc.issuer";
      problem = "an issuer has no query (OpenID Connect Discovery 1.0 section 2):";
      value = issuer;
      remedy = "write what its discovery document has as issuer";
    }
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
        faultIf (s.sso.${what} != [ ] && registrar == server) {
          id = "FL145";
          place = "services.${n}.sso.${what}";
          inherit problem;
          value = concatStringsSep ", " s.sso.${what};
          remedy = "take ${what} out";
        };

      # Registrars that give a client no claims or groups of its own.
      server = if registrar == "pocket-id" then "Pocket ID" else "RFC 7591";
      unmade = attribute: remedy: [
        (fault {
          id = "FL178";
          place = "services.${n}.sso.${attribute}";
          problem = "registering by ${server} gives a client no ${attribute} of its own, such as";
          value = head (attrNames s.sso.${attribute});
          inherit remedy;
        })
      ];

      # Kanidm makes claims from groups, and adds all groups of a person to the scope groups.
      kanidm =
        let
          claims = filter (c: s.sso.claims.${c} != "groups") (attrNames s.sso.claims);
          # OAUTH_CLAIMNAME_RE in its source.
          odd = filter (v: match "[0-9a-zA-Z_]+([:-][0-9a-zA-Z_]+)*" v == null) (
            attrNames s.sso.claims ++ attrNames s.sso.groups
          );
          cannot = attribute: problem: value: remedy: {
            id = "FL178";
            place = "services.${n}.sso.${attribute}";
            inherit problem value remedy;
          };
        in
        map fault (
          when (claims != [ ]) [
            (cannot "claims" "Kanidm makes claims from groups alone, not" (head claims) "take it out")
          ]
          ++ when (odd != [ ]) [
            (cannot (if s.sso.claims ? ${head odd} then "claims" else "groups")
              "names of claims and groups at Kanidm have letters, digits, _ and inner : and -, not"
              (head odd)
              "choose another name"
            )
          ]
          ++ when (claims == [ ] && s.sso.claims != { } && s.sso.groups == { }) [
            (cannot "claims" "Kanidm makes claims from the names in groups, and there are none for" (head (
              attrNames s.sso.claims
            )) "write services.${n}.sso.groups = { <name> = [ \"…\" ]; };")
          ]
          ++ when (s.sso.groups != { } && (s.sso.scopes == [ ] || elem "groups" s.sso.scopes)) [
            (cannot "scopes" "Kanidm adds all groups of a person to the scope groups, besides those in"
              "sso.groups"
              "write scopes without groups, such as [ \"email\" \"profile\" ]"
            )
          ]
        );

      # The issuer of the cluster replaces these scopes by the scopes of other claims.
      others = filter (
        x:
        !elem x [
          "email"
          "groups"
          "offline_access"
          "profile"
        ]
      ) s.sso.scopes;
    in
    faultIf (s.sso.allowedGroups != [ ] && registration != "" && registrar == "rfc7591") {
      id = "FL102";
      place = "services.${n}.sso.allowedGroups";
      problem = "RFC 7591 knows no groups, and the issuer would let all people sign in, not these alone:";
      value = concatStringsSep ", " s.sso.allowedGroups;
      remedy = "take allowedGroups out, and let the issuer decide who may sign in";
    }
    ++ when (registration != "" && registrar == "kanidm" && s.sso.mode == "oidc") kanidm
    ++ when (registration != "" && registrar != "kanidm" && s.sso.mode == "oidc") (
      when (s.sso.claims != { }) (
        unmade "claims" "take claims out, and let the issuer make them for the client"
      )
      ++ when (s.sso.groups != { }) (
        unmade "groups" "take groups out, or sign people in at the ingress, with mode = \"gate\";"
      )
    )
    ++ faultIf (registration == "" && others != [ ] && s.sso.claims == { } && s.sso.groups == { }) {
      id = "FL178";
      place = "services.${n}.sso.scopes";
      problem = "the issuer has no claims for a scope besides email, groups, offline_access and profile:";
      value = head others;
      remedy = "correct it, or write the claims that the service expects in services.${n}.sso.claims";
    }
    ++ lacks "pocket-id" "scopes" "Pocket ID lets every client have all scopes, not these alone:"
    ++ lacks "kanidm" "postLogoutRedirectURIs" "Kanidm leads nobody back who signs out:";
}
