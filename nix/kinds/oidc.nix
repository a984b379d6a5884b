# Clients of the issuer that signs people in (OpenID Connect Core 1.0), for services.
let
  inherit (builtins)
    any
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    length
    lessThan
    map
    sort
    ;
  inherit (import ../types.nix)
    atMost
    between
    default
    enum
    of
    record
    required
    ;
  inherit (import ../formats.nix)
    issuer
    strings
    unit
    url
    ;

  wanting = services: filter (s: s.sso.mode == "oidc") services;
in
{
  doc = "signs people in";
  port = 3;
  alone = "a client, its secret and who is signed in are known to the one where they were made";
  settings.issuer =
    required "its address for browsers and services" "\"https://auth.example.org\""
      issuer;
  policy = t: { inherit (t.providers.oidc) issuer; };

  service.sso = of "how its users sign in" (
    record "sso" {
      mode = of "`oidc`: the host fetches a client's credentials" (enum [
        "none"
        "oidc"
      ]);
      restart = of "unit to restart when they change" unit;
      redirectURIs = of "its callbacks" (atMost 32 url);
      generation =
        default "raised when the secret may be known to others: the host gets another, and the old one ends"
          1
          (between 1 1000000 "a generation");
      rotate =
        default
          "days after which the host requests another secret, and the old one ends; never, unless written"
          0
          (between 0 3650 "days");
      dependsOn = of "needs of this host that must be fulfilled first" strings;
    }
  );

  reasons = clean: map (s: "services.${s.name}.sso needs it") (wanting (attrValues clean.services));

  needs =
    t: host:
    map (service: {
      id = "oidc-${service.name}";
      for = service.idOn host.name;
      request = {
        inherit (t.providers.oidc) issuer;
        service = service.idOn host.name;
        redirectURIs = sort lessThan service.sso.redirectURIs;
      };
      files = {
        client-id = {
          value = "clientId";
          mode = "0444";
        };
        client-secret = {
          value = "clientSecret";
          mode = "0400";
        };
        issuer = {
          value = "issuer";
          mode = "0444";
        };
      };
      owner = service.user;
      renew = if service.sso.rotate > 0 then { rotate = service.sso.rotate * 86400; } else { };
      inherit (service.sso) restart dependsOn generation;
      place = "services.${service.name}.sso";
    }) (wanting (map (s: t.services.${s}) host.services));

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
        excluded
        fault
        missing
        named
        serviceOf
        when
        ;
      issuer = serviceOf clean.providers.oidc.issuer;

      # Hosts whose service has one identity have one client.
      shared = n: clean.services.${n}.scope == "cluster" && length t.services.${n}.hosts > 1;

      # Without its mode the rest has no effect. A wrong mode was reported.
      idle =
        s:
        s.mode == "none"
        && (
          s.restart != "" || s.redirectURIs != [ ] || s.dependsOn != [ ] || s.generation != 1 || s.rotate != 0
        );
    in
    {
      top = import ../issuerpages.nix {
        kind = "oidc";
        port = 5556;
        inherit clean t lib;
      };

      service =
        n: s:
        when (idle s.sso && shapes.services.${n} == [ ]) (
          excluded "write mode = \"oidc\";, or take out what it would be for" "services.${n}.sso"
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
        ++ when (s.sso.mode == "oidc") (
          when (s.sso.redirectURIs == [ ]) (
            missing "services.${n}.sso" "redirectURIs"
              "write redirectURIs = [ \"https://…\" ]; with the address the service calls its callback"
          )
          ++ concatMap (named "services.${n}.sso.redirectURIs") s.sso.redirectURIs
          ++ concatMap (answers "services.${n}.sso.redirectURIs") s.sso.redirectURIs
        );

      # Signing in takes the service to the pages of the issuer, where that is in the cluster.
      warnings.service =
        n: s:
        let
          holders = [ t.services.${n} ] ++ map (h: t.hosts.${h}) t.services.${n}.hosts;
          reaches = any (p: any (r: elem r access.leading.${issuer} or [ ]) p.roles) holders;
        in
        when
          (
            s.sso.mode == "oidc"
            && issuer != null
            && t.services ? ${issuer}
            && t.services.${n}.hosts != [ ]
            && !reaches
          )
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
