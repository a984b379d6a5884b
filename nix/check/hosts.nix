# Faults of each host.
{
  access,
  clean,
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
    elem
    filter
    groupBy
    head
    length
    listToAttrs
    mapAttrs
    substring
    ;
  inherit (import ../lib) isInvalid toSet;
  inherit (lib)
    fault
    faultIf
    role
    service
    show
    unknown
    user
    when
    ;
  addresses = import ./addresses.nix arguments;
  calls = import ./calls.nix arguments;
  needs = import ./needs.nix arguments;
  inherit (import ./placement.nix arguments) full;
  ports = import ./ports.nix arguments;
  relays = import ./relays.nix arguments;
  transports = import ./transports.nix arguments;
  until = (import ./until.nix arguments).faults;

  # Hosts that share a value with an earlier host: name → the name of the earlier one. Computed once
  # for all hosts.
  earlier =
    key: hosts:
    let
      groups = groupBy key hosts;
      others =
        same:
        map (h: {
          inherit (h) name;
          value = (head same).name;
        }) (filter (h: h.name != (head same).name) same);
    in
    if length (attrNames groups) == length hosts then
      { }
    else
      listToAttrs (concatMap others (attrValues groups));

  sameKey = earlier (h: h.sshHostKey) (
    filter (h: h.sshHostKey != "" && !isInvalid h.sshHostKey) (attrValues t.hosts)
  );

  # A host without a key in the flake joins over the network, at providers on other hosts.
  joins =
    n: h:
    faultIf (h.kinds != [ ]) {
      id = "FL080";
      place = "hosts.${n}";
      problem = "a host without sshHostKey joins by its providers, and cannot provide";
      value = show (head h.kinds);
      remedy = "write the line of /etc/ssh/ssh_host_ed25519_key.pub on this host: sshHostKey = \"ssh-ed25519 AAAA…\";";
    }
    ++ faultIf (h.kinds == [ ] && (t.providers.config.hosts == [ ] || h.deploy != "network")) {
      id = "FL081";
      place = "hosts.${n}";
      problem = "a host without sshHostKey joins at a provider of its documents, and has";
      value = "none";
      remedy = "name hosts in providers.config.hosts and leave it deploy = \"network\"; or write sshHostKey = \"ssh-ed25519 AAAA…\";";
    };

  key =
    n: [
      (fault {
        id = "FL021";
        place = "hosts.${n}.sshHostKey";
        problem = "host ${sameKey.${n}} already has";
        value = t.hosts.${n}.sshHostKey;
        remedy = "each host proves itself with a key of its own: remove the copied keys in /etc/ssh and run ssh-keygen -A";
      })
    ];

  # Roles that need a capability of the host, held by the host or by a service on it.
  capabilities =
    n: h:
    let
      of =
        place: holder:
        concatMap (
          r:
          map (
            c:
            fault {
              id = "FL034";
              inherit place;
              problem = "role ${r} needs a host with the capability";
              value = show c;
              remedy = "write it in hosts.${n}.capabilities if the host has it, or take the role away";
            }
          ) (filter (c: !elem c h.capabilities) (t.roles.${r}.requires or [ ]))
        ) holder.roles;
    in
    of "hosts.${n}.roles" h ++ concatMap (s: of "services.${s.name}.roles" s) h.running;
  requiring = any (r: r.requires != [ ]) (attrValues t.roles);

  # Providers on a host that lacks something that the kind needs.
  provides =
    n: h:
    concatMap (
      kind:
      map (
        c:
        fault {
          id = "FL035";
          place = "providers.${kind}.hosts";
          problem = "host ${n} lacks the capability";
          value = show c;
          remedy = "write it in hosts.${n}.capabilities if the host has it, or name another host";
        }
      ) (filter (c: !elem c h.capabilities) t.providers.${kind}.requires)
    ) h.kinds;

  callers =
    n: h:
    let
      identities = toSet (map (i: i.key) access.identities.${n});
    in
    when (!any isInvalid h.users) (
      unknown "FL015" "identity of this host" identities "hosts.${n}.callers" (attrNames h.callers)
    );

  grouped =
    n: h:
    map (
      f:
      if substring 0 12 f.remedy == "did you mean" then
        f
      else
        f // { remedy = "${f.remedy}: write hostGroups.${lib.attribute h.group} = { }; for a new one"; }
    ) (unknown "FL016" "group of hosts" clean.hostGroups "hosts.${n}.group" [ h.group ]);
in
mapAttrs (
  n: written:
  let
    h = t.hosts.${n};
  in
  (if written.users == [ ] then [ ] else user "hosts.${n}.users" written.users)
  ++ (if written.roles == [ ] then [ ] else role "hosts.${n}.roles" written.roles)
  ++ (if written.until == { } then [ ] else until "hosts.${n}" written)
  ++ (if written.keeps == [ ] then [ ] else service "hosts.${n}.keeps" written.keeps)
  ++ (if written.group == "" then [ ] else grouped n written)
  ++ (if written.callers == { } then [ ] else callers n written)
  ++ (if written.relays == [ ] then [ ] else relays.named "hosts.${n}.relays" written.relays)
  ++ (
    if written.relays != [ ] || h.hidden || relays.limited written then
      relays.itself n written h
    else
      [ ]
  )
  ++ addresses n h
  ++ calls n h
  ++ (if sameKey ? ${n} then key n else [ ])
  ++ (if h.sshHostKey == "" then joins n h else [ ])
  ++ ports n h
  ++ transports n h
  ++ needs n
  ++ (if requiring then capabilities n h else [ ])
  ++ (if h.kinds == [ ] then [ ] else provides n h)
  ++ (if written.capacity == null then [ ] else full n written)
) clean.hosts
