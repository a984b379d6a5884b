# Faults of the cluster as a whole: its providers, trust, host groups and reserved names.
{
  clean,
  kinds,
  lib,
  ...
}@arguments:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    head
    length
    map
    ;
  inherit (lib)
    attribute
    fault
    host
    reserved
    role
    show
    user
    when
    ;
  inherit (import ../lib.nix) distinct;
  all = import ../kinds;

  providers =
    concatMap (
      kind:
      let
        k = all.${kind};
        hosts = distinct clean.providers.${kind}.hosts;
        reasons = k.reasons clean;
        required = filter (n: k.settings.${n} ? required) (attrNames k.settings);
        others = concatStringsSep "" (map (n: "${n} = ${k.settings.${n}.hint}; ") required);
      in
      host "providers.${kind}.hosts" hosts
      ++ when (k ? alone && length hosts > 1) [
        (fault {
          id = "FL062";
          place = "providers.${kind}.hosts";
          problem = "its hosts share no store, and ${k.alone}: found";
          value = concatStringsSep ", " hosts;
          remedy = "choose one: providers.${kind}.hosts = [ ${show (head hosts)} ];";
        })
      ]
      ++ when (k ? reasons && hosts == [ ] && reasons != [ ]) [
        (fault {
          id = "FL031";
          place = "providers.${kind}";
          problem = "no host provides";
          value = show kind;
          remedy = "${head reasons}: write providers.${kind} = { hosts = [ \"…\" ]; ${others}};";
        })
      ]
    ) (attrNames all)
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

  hostGroups = concatMap (
    g:
    let
      place = "hostGroups.${attribute g}";
      of = clean.hostGroups.${g};
    in
    user "${place}.users" of.users
    ++ role "${place}.roles" of.roles
    ++ when (elem "operator" of.roles) [ (reserved "${place}.roles" "operator") ]
  ) (attrNames clean.hostGroups);

  names =
    section: what: set: value:
    concatMap (
      n:
      when (!set ? ${n}) [
        (fault {
          id = "FL017";
          place = section;
          problem = "the reserved ${what} is missing:";
          value = n;
          remedy = "write ${section}.${n} = ${value.${n}};";
        })
      ]
    ) (attrNames value);
in
providers
++ trust
++ hostGroups
++ import ./rollout.nix arguments
++ names "roles" "role" clean.roles {
  node = "{ services = [ ]; }";
  operator = "{ serviceGroups = [ \"control-plane\" \"control-plane-write\" ]; }";
}
++ names "serviceGroups" "group" clean.serviceGroups {
  control-plane = "[ ]";
  control-plane-write = "[ ]";
}
