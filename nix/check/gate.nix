# Faults of sign-ins that an ingress requires (`sso.mode = "gate"`).
{
  access,
  clean,
  issuer,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    head
    ;
  inherit (lib)
    excluded
    fault
    faultIf
    show
    when
    ;
  inherit (import ../lib) toSet;
  names = import ../lib/names.nix;
  inherit (import ../resolve/publicnames.nix) isWild;
  unwritten = (import ../language/signin.nix).sso.zero;
  gate = import ../resolve/gate.nix;
  entries = import ../access/entries.nix {
    inherit access;
    topology = t;
  };
  gated = t // {
    inherit access;
  };
  serving = gate.serving gated;

  cannot = n: problem: value: remedy: [
    (fault {
      id = "FL171";
      place = "services.${n}.sso.mode";
      inherit problem value remedy;
    })
  ];
in
{
  # service :: String -> Service -> [Fault]
  service =
    n: s:
    let
      place = "services.${n}.sso";
      # Ports that lead past the gate.
      past = filter (p: s.ports == { } || elem p (gate.ports s)) (attrNames s.publicPorts);
    in
    concatMap (a: when (s.sso.${a} != unwritten.${a}) (excluded "take it out: the ingress has the client" "${place}.${a}" "mode = \"gate\"")) [
      "claims"
      "postLogoutRedirectURIs"
      "public"
      "redirectURIs"
      "restart"
      "rotate"
      "scopes"
    ]
    ++ when (s.grpc) (excluded "take one of them out: programs that speak gRPC cannot sign in" "services.${n}.grpc" "sso.mode = \"gate\"")
    ++ when (s.tlsName == "" || s.visibility != "public") (
      cannot n "only an ingress can require a sign-in, and the service has no public name: found" (
        if s.tlsName == "" then "no tlsName" else "visibility = ${show s.visibility}"
      ) "write visibility = \"public\"; and tlsName = \"…\";, or take the gate out"
    )
    ++ when (any isWild s.tlsAliases) (
      cannot n "an issuer leads people back to exact names only, not to" (concatStringsSep ", " (
        filter isWild s.tlsAliases
      )) "write each name in tlsAliases, or take the wildcard out"
    )
    ++ when (clean.providers.tls.hosts == [ ]) (
      cannot n "a proxy that you configure yourself would require no sign-in: found" "no providers.tls" "write providers.tls = { … };, so that flor ingress configures the proxy, or take the gate out"
    )
    ++ when (past != [ ]) (
      cannot n "strangers would reach the service without a sign-in at" "publicPorts.${head past}" "take the public port out, or the gate"
    );

  # warnings :: String -> [Fault]
  warnings =
    n:
    let
      hosts = serving n;
      away =
        if issuer == null || !t.services ? ${issuer} then
          [ ]
        else
          filter (h: !any (r: elem r (access.leading.${issuer} or [ ])) t.hosts.${h}.roles) hosts;

      service = t.services.${n};
      ingresses = gate.ingresses gated service;
      # The callers that the publishing forwarder refuses.
      refused =
        map names.short (
          filter (id: !elem id ingresses && names.kind id != "user") (
            attrNames (toSet (concatMap (i: access.allowTo n i.name) (gate.guarded service)))
          )
        )
        ++ map (e: "outside.${e.caller.name}") (
          filter (e: e.service.name == n && gate.guards service e.port) (
            concatMap entries.outsideOn (attrNames t.hosts)
          )
        );
    in
    concatMap (h: [
      (fault {
        id = "FL045";
        place = "services.${n}.sso";
        problem = "signing in needs the issuer, which ingress ${h} may not reach:";
        value = "service ${issuer}";
        remedy = "give hosts.${h}.roles a role that reaches ${issuer}";
      })
    ]) away
    ++ faultIf (refused != [ ]) {
      id = "FL172";
      place = "services.${n}.sso.mode";
      problem = "inside the cluster, only users pass the gate, and it refuses these callers:";
      value = concatStringsSep ", " refused;
      remedy = "take services.${n} out of their roles, or let them reach another port of it";
    };
}
