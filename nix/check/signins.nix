# Faults of the sign-in of services (`sso`) and of the issuer.
{
  access,
  clean,
  shapes,
  t,
  lib,
  ...
}@arguments:
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
    ;
  inherit (import ../lib) isInvalid;
  signin = import ../language/signin.nix;
  inherit (lib)
    answers
    attribute
    excluded
    fault
    faultIf
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
  taken = import ../kinds/taken.nix lib (
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
  issuers = import ./issuers.nix { inherit clean lib; };
  gates = import ./gate.nix (arguments // { inherit issuer; });
in
{
  top =
    (
      if registration == "" then
        import ./issuerpages.nix { inherit clean lib; } {
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
      ++ faultIf (s.sso.rotate > 0 && shared n) {
        id = "FL063";
        place = "services.${n}.sso.rotate";
        problem = "the secret is that of several hosts, where one alone would have the new one:";
        value = concatStringsSep ", " t.services.${n}.hosts;
        remedy = "take rotate out and raise services.${n}.sso.generation, or give each host a client with services.${n}.scope = \"node\";";
      }
      ++ when (s.sso.public && s.sso.rotate > 0) (
        excluded "take one of them out: such a client has no secret" "services.${n}.sso.rotate"
          "public = true"
      )
      ++ when (s.sso.cluster == "" && shapes.services.${n} == [ ]) (issuers.service n s)
      ++ when (s.sso.cluster != "" && !isInvalid s.sso.cluster) (
        faultIf (at s == null || (at s).oidc.hosts == { }) {
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
        }
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
}
