# Faults of the cluster as a whole: its providers, trust, inventory and reserved names.
{ clean, tools, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    head
    map
    ;
  inherit (tools) attribute fault host named reserved role serviceOf show user when;

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
  inherit (clean.providers) config oidc;

  providers =
    concatMap (n: host "providers.${n}.hosts" clean.providers.${n}.hosts) (attrNames clean.providers)
    ++ map
      (f: f // { remedy = "declare the pages of the issuer, services.${serviceOf oidc.issuer} = { host = ${show (head (oidc.hosts ++ [ "…" ]))}; port = 5556; };"; })
      (named "providers.oidc.issuer" oidc.issuer)
    ++ missing "cert" (attrValues clean.hosts) (_: "every host needs a certificate") "{ hosts = [ \"…\" ]; }"
    ++ missing "file" (filter (s: s.files != { }) services)
      (s: "services.${s}.files needs it") "{ hosts = [ \"…\" ]; }"
    ++ missing "oidc" (filter (s: s.sso.mode == "oidc") services)
      (s: "services.${s}.sso needs it") "{ hosts = [ \"…\" ]; issuer = \"https://…\"; }";

  # What was written wrongly is below zero, and was reported.
  freshness = when (config.staleAfter >= 0 && config.staleAfter <= config.every) [
    (fault {
      id = "FL009";
      place = "providers.config.staleAfter";
      problem = "hosts would raise the alarm between two requests, which come every ${toString config.every} seconds: found";
      value = toString config.staleAfter;
      remedy = "write more than providers.config.every, 86400 for a day";
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
    ++ when (clean.trust.keys == [ ] && clean.providers.config.hosts != [ ] && any (h: h.deploy == "network") (attrValues clean.hosts)) [
      (fault {
        id = "FL008";
        place = "trust.keys";
        problem = "hosts would refuse every document from providers.config, for they pin";
        value = "no key";
        remedy = "make one with `nix key generate-secret` and write its public half, trust.keys = [ \"name:base64\" ];";
      })
    ];

  inventory = concatMap
    (g:
      let place = "inventory.${attribute g}"; of = clean.inventory.${g}; in
      user "${place}.users" of.users
      ++ role "${place}.roles" of.roles
      ++ when (elem "operator" of.roles) [ (reserved "${place}.roles" "operator") ])
    (attrNames clean.inventory);

  names = what: set: value: concatMap
    (n: when (!set ? ${n}) [
      (fault {
        id = "FL017";
        place = "${what}s";
        problem = "the reserved ${what} is missing:";
        value = n;
        remedy = "write ${what}s.${n} = ${value.${n}};";
      })
    ])
    (attrNames value);
in
providers ++ freshness ++ trust ++ inventory
++ names "role" clean.roles {
  node = "{ groups = [ \"control-plane\" ]; }";
  operator = "{ groups = [ \"control-plane\" \"control-plane-write\" ]; }";
}
++ names "group" clean.groups { control-plane = "[ ]"; control-plane-write = "[ ]"; }
