# Faults of the cluster as a whole: its providers, trust, inventory and reserved names.
{ clean, kinds, tools, ... }:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    head
    map
    ;
  inherit (tools) attribute fault host reserved role show user when;
  all = import ../kinds;

  providers = concatMap
    (kind:
      let
        k = all.${kind};
        reasons = k.reasons clean;
        required = filter (n: k.settings.${n} ? required) (attrNames k.settings);
        others = concatStringsSep "" (map (n: "${n} = ${k.settings.${n}.hint}; ") required);
      in
      host "providers.${kind}.hosts" clean.providers.${kind}.hosts
      ++ when (k ? reasons && clean.providers.${kind}.hosts == [ ] && reasons != [ ]) [
        (fault {
          id = "FL031";
          place = "providers.${kind}";
          problem = "no host provides";
          value = show kind;
          remedy = "${head reasons}: write providers.${kind} = { hosts = [ \"…\" ]; ${others}};";
        })
      ])
    (attrNames all)
  ++ concatMap (k: k.top or [ ]) kinds;

  trust = when (clean.trust.roots == [ ]) [
    (fault {
      id = "FL007";
      place = "trust.roots";
      problem = "hosts would trust";
      value = "no certificate at all";
      remedy = "make a root with `florctl ca init` and write trust.roots = [ ./ca.crt ];";
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
providers ++ trust ++ inventory
++ names "role" clean.roles {
  node = "{ groups = [ \"control-plane\" ]; }";
  operator = "{ groups = [ \"control-plane\" \"control-plane-write\" ]; }";
}
++ names "group" clean.groups { control-plane = "[ ]"; control-plane-write = "[ ]"; }
