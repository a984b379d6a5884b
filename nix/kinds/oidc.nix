# Clients of the issuer that signs people in (OpenID Connect Core 1.0), for services.
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    mapAttrs
    ;
  inherit (import ../language/types) enum of required;
  inherit (import ../language/formats) url;
  inherit (import ../lib) optionalAttrs;
  connectors = import ../language/connectors.nix;
  signin = import ../language/signin.nix;

  wanting = services: filter (s: s.sso.mode == "oidc") services;

  # Services at whose public names an ingress requires a sign-in.
  gate = import ../resolve/gate.nix;
  elsewhere = import ../resolve/signinelsewhere.nix;
in
{
  doc = "Signs people in (OpenID Connect).";
  port = 3;
  alone = "a client, its secret and who is signed in are known to the one where they were made";
  settings = {
    issuer =
      required
        "URL of the issuer, for browsers and services. It has a path only with `registration`."
        "\"https://auth.example.org\""
        url;
    registration = of "URL at which an issuer of others registers clients. Services are then clients of that issuer, and Florete serves no sign-in pages." url;
    registrar = of "How services are registered: by RFC 7591 at the address in `registration`, or by the API of the named product at that server." (enum [
      "rfc7591"
      "kanidm"
      "pocket-id"
    ]);
    ldap = of "LDAP directories whose people sign in, by name." connectors.ldap;
    upstream = of "Other issuers whose people sign in, by name." connectors.upstream;
  };
  policy =
    t:
    let
      inherit (t.providers.oidc)
        issuer
        ldap
        registrar
        registration
        upstream
        ;
      titled = mapAttrs (
        name: c: removeAttrs c [ "name" ] // { title = if c.title == "" then name else c.title; }
      );
    in
    {
      inherit issuer;
    }
    // optionalAttrs (registration != "") { inherit registration; }
    // optionalAttrs (registrar != "rfc7591") { inherit registrar; }
    // optionalAttrs (ldap != { }) { ldap = titled ldap; }
    // optionalAttrs (upstream != { }) { upstream = titled upstream; };

  service.sso = of "How people sign in to the service." signin.sso;

  reasons =
    clean:
    map (s: "services.${s.name}.sso needs it") (
      filter (s: s.sso.mode != "none" && s.sso.cluster == "") (attrValues clean.services)
    )
    ++ map (n: "clusters.${n}.clients needs it") (
      filter (n: clean.clusters.${n}.clients != { }) (attrNames clean.clusters)
    );

  needs =
    t:
    let
      gates = gate.needs t;
    in
    host:
    gates host
    ++ map (service: {
      id = "oidc-${service.name}";
      for = service.idOn host.name;
      request = {
        inherit (elsewhere.issuer t service) issuer;
        service = service.idOn host.name;
      }
      // gate.client service (service.idOn host.name)
      // elsewhere.requested service.sso;
      files = {
        client-id = {
          value = "clientId";
          mode = "0444";
        };
        issuer = {
          value = "issuer";
          mode = "0444";
        };
      }
      // optionalAttrs (!service.sso.public) {
        client-secret = {
          value = "clientSecret";
          mode = "0400";
        };
      };
      owner = service.user;
      providers = elsewhere.hosts t service;
      renew = if service.sso.rotate > 0 then { rotate = service.sso.rotate * 86400; } else { };
      inherit (service.sso) restart dependsOn generation;
      place = "services.${service.name}.sso";
    }) (wanting host.wanting);

  # Grants for the clients of other clusters, each with the SSH host key of its caller.
  granted = t: concatMap (c: c) (attrValues (elsewhere.clients t));

  # A host has several needs for gates.
  label = need: if gate.isNeed need.id then need.id else "oidc";

  check = import ../check/signins.nix;
}
