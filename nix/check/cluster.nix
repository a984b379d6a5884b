# Faults of the cluster as a whole: its providers, trust, inventory and reserved names.
{ clean, t, tools, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    head
    ;
  inherit (tools) fault host named reserved role show user when;

  missing = kind: why: write: when (clean.providers.${kind}.hosts == [ ]) [
    (fault {
      id = "FL031";
      place = "providers.${kind}";
      problem = "no host provides";
      value = show kind;
      remedy = "${why}: write providers.${kind} = ${write};";
    })
  ];
  single = filter (s: s.sso.mode == "oidc") (attrValues t.services);
  filed = filter (s: s.files != { }) (attrValues t.services);

  providers =
    concatMap (n: host "providers.${n}.hosts" clean.providers.${n}.hosts) (attrNames clean.providers)
    ++ named "providers.oidc.issuer" clean.providers.oidc.issuer
    ++ when (clean.hosts != { }) (missing "cert" "every host needs a certificate" "{ hosts = [ \"…\" ]; }")
    ++ when (filed != [ ]) (missing "file" "services.${(head filed).name}.files needs it" "{ hosts = [ \"…\" ]; }")
    ++ when (single != [ ]) (missing "oidc" "services.${(head single).name}.sso needs it"
      "{ hosts = [ \"…\" ]; issuer = \"https://…\"; }");

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
      let place = "inventory.${if builtins.match "[a-z_][a-z0-9_-]*" g != null then g else builtins.toJSON g}"; of = clean.inventory.${g}; in
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
providers ++ trust ++ inventory
++ names "role" clean.roles {
  node = "{ groups = [ \"control-plane\" ]; }";
  operator = "{ groups = [ \"control-plane\" \"control-plane-write\" ]; }";
}
++ names "group" clean.groups { control-plane = "[ ]"; control-plane-write = "[ ]"; }
