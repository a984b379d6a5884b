# Faults of the cluster as a whole: its providers, trust, host groups and reserved names.
{
  clean,
  kinds,
  lib,
  shapes,
  t,
  ...
}@arguments:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    head
    length
    match
    ;
  inherit (lib)
    attribute
    excluded
    fault
    faultIf
    host
    missing
    reserved
    role
    show
    user
    when
    ;
  inherit (import ../lib) distinct isInvalid;
  relays = import ./relays.nix arguments;
  until = (import ./until.nix arguments).faults;
  all = t.kinds;
  # Only services that use some kind of need can be a reason to provide it.
  wanting = clean // { services = t.wanting; };

  inherit (clean.providers) store;
  members = distinct store.hosts;

  # The sealing key of a shared store is encrypted to the SSH host keys of its hosts.
  shared =
    host "providers.store.hosts" members
    ++ when (store.kind == "etcd") (
      when (members == [ ]) (
        missing "providers.store" "hosts" "write hosts = [ \"…\" \"…\" \"…\" ]; with provider hosts, three or five"
      )
      ++ map (
        h:
        fault {
          id = "FL066";
          place = "providers.store.hosts";
          problem = "a member of the store runs on a host that provides something, and has an address; not on";
          value = "host ${h}";
          remedy = "name provider hosts with addresses";
        }
      ) (filter (h: t.hosts ? ${h} && (t.hosts.${h}.kinds == [ ] || t.hosts.${h}.machines == [ ])) members)
      ++ concatMap (
        h:
        faultIf (clean.hosts.${h}.sshHostKey != "" && !isInvalid clean.hosts.${h}.sshHostKey && match "ssh-(ed25519|rsa) .*" clean.hosts.${h}.sshHostKey == null) {
          id = "FL066";
          place = "hosts.${attribute h}.sshHostKey";
          problem = "the sealing key of providers is sealed to keys of type ssh-ed25519 or ssh-rsa, not";
          value = head (match "([^ ]*).*" clean.hosts.${h}.sshHostKey);
          remedy = "write the line of /etc/ssh/ssh_host_ed25519_key.pub of this host";
        }
      ) (distinct (concatMap (kind: t.providers.${kind}.hosts) (attrNames t.providers)))
    )
    ++ host "providers.store.from" store.from
    ++ map (
      h:
      fault {
        id = "FL072";
        place = "providers.store.from";
        problem = "only hosts that provide something have state that moves into the store, not";
        value = "host ${h}";
        remedy = "name those that had it in files, or none where there never was any";
      }
    ) (filter (h: t.hosts ? ${h} && t.hosts.${h}.kinds == [ ]) (distinct store.from))
    ++ concatMap (
      n:
      when (store.kind != "etcd" && any (h: !isInvalid h) store.${n}) (
        excluded "write kind = \"etcd\";, or take ${n} out" "providers.store.${n}" "kind = \"file\""
      )
    ) [
      "hosts"
      "from"
    ];

  providers =
    concatMap (
      kind:
      let
        k = all.${kind};
        hosts = distinct clean.providers.${kind}.hosts;
        reasons = k.reasons wanting;
        required = filter (n: k.settings.${n} ? required) (attrNames k.settings);
        others = concatStringsSep "" (map (n: "${n} = ${k.settings.${n}.hint}; ") required);
      in
      host "providers.${kind}.hosts" hosts
      ++ faultIf (k ? alone && length hosts > 1 && store.kind != "etcd") {
        id = "FL062";
        place = "providers.${kind}.hosts";
        problem = "its hosts share no store, and ${k.alone}: found";
        value = concatStringsSep ", " hosts;
        remedy = "choose one: providers.${kind}.hosts = [ ${show (head hosts)} ]; or have all share one: providers.store = { kind = \"etcd\"; hosts = [ … ]; };";
      }
      ++ faultIf (k ? reasons && hosts == [ ] && reasons != [ ]) {
        id = "FL031";
        place = "providers.${kind}";
        problem = "no host provides";
        value = show kind;
        remedy = "${head reasons}: write providers.${kind} = { hosts = [ \"…\" ]; ${others}};";
      }
    ) (attrNames all)
    ++ shared
    ++ concatMap (k: k.top or [ ]) kinds;

  trust =
    faultIf (clean.trust.roots == [ ]) {
      id = "FL007";
      place = "trust.roots";
      problem = "hosts would trust";
      value = "no certificate at all";
      remedy = "make a root with `florctl ca init` and write trust.roots = [ ./ca.crt ];";
    }
    ++ faultIf (clean.trust.threshold > 1 && clean.trust.threshold > signers) {
      id = "FL159";
      place = "trust.threshold";
      problem = "nobody could publish, because trust.signingKeys has ${toString signers} different keys, and so many must sign:";
      value = toString clean.trust.threshold;
      remedy = "list the public key of each operator who signs in trust.signingKeys, or write trust.threshold = ${toString (max1 signers)};";
    };

  signers = import ./signers.nix clean;
  max1 = n: if n > 1 then n else 1;

  hostGroups = concatMap (
    g:
    let
      place = "hostGroups.${attribute g}";
      of = clean.hostGroups.${g};
    in
    user "${place}.users" of.users
    ++ role "${place}.roles" of.roles
    ++ when (of.relays != [ ]) (relays.named "${place}.relays" of.relays)
    ++ until place of
    ++ when (elem "operator" of.roles) [ (reserved "${place}.roles" "operator") ]
    ++ when (of.until ? operator) [ (reserved "${place}.until" "operator") ]
  ) (attrNames clean.hostGroups);

  names =
    section: what: set: value:
    concatMap (
      n:
      faultIf (!set ? ${n} && !any (f: f.place == section || f.place == "mkCluster" && f.id == "FL002") shapes.top) {
        id = "FL017";
        place = section;
        problem = "the reserved ${what} is missing:";
        value = n;
        remedy = "write ${section}.${n} = ${value.${n}};";
      }
    ) (attrNames value);
in
providers
++ trust
++ hostGroups
++ import ./rollout.nix arguments
++ import ./expect.nix arguments
++ (import ./ingress.nix arguments).redirects
++ names "roles" "role" clean.roles {
  node = "{ services = [ ]; }";
  operator = "{ serviceGroups = [ \"control-plane\" \"control-plane-write\" ]; }";
}
++ names "serviceGroups" "group" clean.serviceGroups {
  control-plane = "[ ]";
  control-plane-write = "[ ]";
}
