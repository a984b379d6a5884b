# Faults of the cluster as a whole: its providers, trust, host groups and reserved names.
{ clean, t, tools, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    head
    map
    match
    ;
  inherit (tools) answers attribute fault host named reserved role serviceOf show user when;

  missing = kind: needing: why: write: when (clean.providers.${kind}.hosts == [ ] && needing != [ ]) [
    (fault {
      id = "FL031";
      place = "providers.${kind}";
      problem = "no host provides";
      value = show kind;
      remedy = "${why (head needing).name}: write providers.${kind} = ${write};";
    })
  ];
  services = attrValues clean.services;

  # The provider serves its pages on the host, unless something else takes them there.
  issuer = serviceOf oidc.issuer;
  pages =
    let service = t.services.${issuer}; in
    when (issuer != null && t.services ? ${issuer} && service.hosts != [ ] && clean.services.${issuer}.upstream == ""
      && oidc.hosts != [ ] && !any (h: elem h oidc.hosts) service.hosts) [
      (fault {
        id = "FL028";
        place = "services.${issuer}";
        problem = "the pages of the issuer are where providers.oidc is, not on";
        value = concatStringsSep ", " service.hosts;
        remedy = "write services.${issuer}.host = ${show (head oidc.hosts)};";
      })
    ];
  inherit (clean.providers) config oidc;

  providers =
    concatMap (n: host "providers.${n}.hosts" clean.providers.${n}.hosts) (attrNames clean.providers)
    ++ map
      (f: f // { remedy = "declare the pages of the issuer, services.${serviceOf oidc.issuer} = { host = ${show (head (oidc.hosts ++ [ "…" ]))}; port = 5556; listenPort = ${if match "https.*" oidc.issuer == null then "80" else "443"}; };"; })
      (named "providers.oidc.issuer" oidc.issuer)
    ++ answers "providers.oidc.issuer" oidc.issuer
    ++ pages
    ++ missing "cert" (attrValues clean.hosts) (_: "every host needs a certificate") "{ hosts = [ \"…\" ]; }"
    ++ missing "file" (filter (s: s.files != { }) services)
      (s: "services.${s}.files needs it") "{ hosts = [ \"…\" ]; }"
    ++ missing "oidc" (filter (s: s.sso.mode == "oidc") services)
      (s: "services.${s}.sso needs it") "{ hosts = [ \"…\" ]; issuer = \"https://…\"; }";

  # What was written wrongly is below zero, and was reported.
  freshness = when (config.staleAfter >= 0 && config.staleAfter <= config.interval) [
    (fault {
      id = "FL009";
      place = "providers.config.staleAfter";
      problem = "hosts would raise the alarm between two requests, which come every ${toString config.interval} seconds: found";
      value = toString config.staleAfter;
      remedy = "write more than providers.config.interval, 86400 for a day";
    })
  ];

  trust =
    when (clean.trust.roots == [ ]) [
      (fault {
        id = "FL007";
        place = "trust.roots";
        problem = "hosts would trust";
        value = "no certificate at all";
        remedy = "make a root with `florctl ca init` and write trust.roots = [ ./ca.crt ];";
      })
    ]
    ++ when (clean.trust.signingKeys == [ ] && clean.providers.config.hosts != [ ] && any (h: h.deploy == "network") (attrValues clean.hosts)) [
      (fault {
        id = "FL008";
        place = "trust.signingKeys";
        problem = "hosts would refuse every document from providers.config, for they pin";
        value = "no key";
        remedy = "make one with `nix key generate-secret` and write its public half, trust.signingKeys = [ \"name:base64\" ];";
      })
    ];

  hostGroups = concatMap
    (g:
      let place = "hostGroups.${attribute g}"; of = clean.hostGroups.${g}; in
      user "${place}.users" of.users
      ++ role "${place}.roles" of.roles
      ++ when (elem "operator" of.roles) [ (reserved "${place}.roles" "operator") ])
    (attrNames clean.hostGroups);

  names = section: what: set: value: concatMap
    (n: when (!set ? ${n}) [
      (fault {
        id = "FL017";
        place = section;
        problem = "the reserved ${what} is missing:";
        value = n;
        remedy = "write ${section}.${n} = ${value.${n}};";
      })
    ])
    (attrNames value);
in
providers ++ freshness ++ trust ++ hostGroups
++ names "roles" "role" clean.roles {
  node = "{ serviceGroups = [ \"control-plane\" ]; }";
  operator = "{ serviceGroups = [ \"control-plane\" \"control-plane-write\" ]; }";
}
++ names "serviceGroups" "group" clean.serviceGroups { control-plane = "[ ]"; control-plane-write = "[ ]"; }
