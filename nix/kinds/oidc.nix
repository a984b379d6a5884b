# Clients of the issuer that signs people in (OpenID Connect Core 1.0), for services.
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    length
    mapAttrs
    ;
  inherit (import ../language/types) enum of required;
  inherit (import ../language/formats) url;
  inherit (import ../lib) isInvalid optionalAttrs;
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
    ldap = of "LDAP directories whose people sign in, by name." signin.ldap;
    upstream = of "Other issuers whose people sign in, by name." signin.upstream;
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

  check =
    {
      access,
      clean,
      shapes,
      t,
      lib,
      ...
    }:
    let
      inherit (lib)
        answers
        attribute
        excluded
        fault
        missing
        named
        serviceOf
        show
        suggest
        when
        ;
      issuer = serviceOf clean.providers.oidc.issuer;

      # Hosts of a service with one identity share one client.
      shared = n: clean.services.${n}.scope == "cluster" && length t.services.${n}.hosts > 1;

      # Attributes without effect in this mode. A wrong mode has been reported.
      idle =
        s:
        s.mode == "none"
        && (
          s.restart + s.called != ""
          || s.redirectURIs ++ s.postLogoutRedirectURIs ++ s.scopes ++ s.allowedGroups ++ s.dependsOn != [ ]
          || s.claims != { }
          || s.groups != { }
          || s.public
          || s.generation != 1
          || s.rotate != 0
          || s.session != null
          || s.cluster != ""
        );

      # The cluster at whose issuer a service signs people in, if it is another one.
      at = s: clean.clusters.${s.sso.cluster} or null;

      # Services with a client, by the name in its ID.
      taken = import ./taken.nix lib (
        map
          (s: rec {
            key = if s.sso.called != "" then s.sso.called else s.name;
            place = "services.${s.name}.sso";
            value = key;
          })
          (filter (s: s.sso.mode != "none" && s.sso.cluster == "" && !isInvalid s.sso.mode && !isInvalid s.sso.called) (attrValues clean.services))
        ++ concatMap (
          c:
          map (path: {
            key = path;
            place = "clusters.${attribute c.name}.clients.${attribute path}";
            value = path;
          }) (attrNames c.clients)
        ) (attrValues clean.clusters)
      );

      inherit (clean.providers.oidc) registration;
      issuers = import ../check/issuers.nix { inherit clean lib; };
      gates = import ../check/gate.nix {
        inherit
          access
          clean
          issuer
          lib
          t
          ;
      };
    in
    {
      top =
        (
          if registration == "" then
            import ../check/issuerpages.nix { inherit clean lib; } {
              kind = "oidc";
              leads = "port = 5556;";
              inherit t;
            }
          else
            [ ]
        )
        ++ issuers.top;

      # Most services have no sign-in.
      service =
        n: s:
        if s.sso == signin.sso.zero then
          [ ]
        else
          when (idle s.sso && shapes.services.${n} == [ ]) (
            excluded "write mode = \"oidc\"; or mode = \"gate\";, or take out what it would be for" "services.${n}.sso"
              "mode = \"none\""
          )
          ++ when (s.sso.rotate > 0 && shared n) [
            (fault {
              id = "FL063";
              place = "services.${n}.sso.rotate";
              problem = "the secret is that of several hosts, where one alone would have the new one:";
              value = concatStringsSep ", " t.services.${n}.hosts;
              remedy = "take rotate out and raise services.${n}.sso.generation, or give each host a client with services.${n}.scope = \"node\";";
            })
          ]
          ++ when (s.sso.public && s.sso.rotate > 0) (
            excluded "take one of them out: such a client has no secret" "services.${n}.sso.rotate"
              "public = true"
          )
          ++ when (s.sso.cluster == "" && shapes.services.${n} == [ ]) (issuers.service n s)
          ++ when (s.sso.cluster != "" && !isInvalid s.sso.cluster) (
            when (at s == null || (at s).oidc.hosts == { }) [
              (fault {
                id = "FL184";
                place = "services.${n}.sso.cluster";
                problem =
                  if at s == null then
                    "unknown cluster"
                  else
                    "clusters.${attribute s.sso.cluster} has no issuer: found";
                value = if at s == null then show s.sso.cluster else "no oidc";
                remedy =
                  if at s == null then
                    suggest "cluster" s.sso.cluster (attrNames clean.clusters)
                  else
                    "write clusters.${attribute s.sso.cluster}.oidc = { issuer = \"https://…\"; hosts = { … }; };";
              })
            ]
            ++ when (s.sso.mode == "gate") (
              excluded "take cluster out: an ingress signs people in at the issuer of its own cluster"
                "services.${n}.sso.cluster"
                "mode = \"gate\""
            )
            ++ when (s.sso.called != "") (
              excluded "take called out: the other cluster names the client" "services.${n}.sso.called"
                "cluster = ${show s.sso.cluster}"
            )
          )
          ++ taken "services.${n}.sso"
          ++ when (s.sso.mode == "oidc" && s.sso.session != null) (
            excluded "take session out: the service decides how long people stay signed in" "services.${n}.sso.session"
              "mode = \"oidc\""
          )
          ++ when (s.sso.mode == "gate" && shapes.services.${n} == [ ]) (gates.service n s)
          ++ when (s.sso.mode == "oidc") (
            when (s.sso.redirectURIs == [ ]) (
              missing "services.${n}.sso" "redirectURIs"
                "write redirectURIs = [ \"https://…\" ]; with the address the service calls its callback"
            )
            ++ concatMap (
              attribute:
              concatMap (
                u: named "services.${n}.sso.${attribute}" u ++ answers "services.${n}.sso.${attribute}" u
              ) s.sso.${attribute}
            ) [ "redirectURIs" "postLogoutRedirectURIs" ]
          );

      # The service must reach the pages of an issuer inside the cluster.
      warnings.service =
        n: s:
        let
          holders = [ t.services.${n} ] ++ map (h: t.hosts.${h}) t.services.${n}.hosts;
          reaches = any (p: any (r: elem r access.leading.${issuer} or [ ]) p.roles) holders;
        in
        if s.sso.mode == "gate" && shapes.services.${n} == [ ] then
          gates.warnings n
        else if
          s.sso.mode != "oidc"
          || s.sso.cluster != ""
          || issuer == null
          || !t.services ? ${issuer}
          || t.services.${n}.hosts == [ ]
          || reaches
        then
          [ ]
        else
          [
            (fault {
              id = "FL045";
              place = "services.${n}.sso";
              problem = "signing in needs the issuer, which the service may not reach:";
              value = "service ${issuer}";
              remedy = "give services.${n}.roles a role that reaches ${issuer}";
            })
          ];
    };
}
