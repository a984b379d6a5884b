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
    elemAt
    filter
    genList
    groupBy
    head
    length
    lessThan
    listToAttrs
    map
    mapAttrs
    match
    sort
    substring
    ;
  inherit (import ../lib.nix) isInvalid toSet;
  inherit (lib)
    fault
    role
    service
    show
    twice
    unknown
    user
    when
    ;
  address = import ../address.nix;
  addresses = import ./addresses.nix arguments;
  needs = import ./needs.nix arguments;
  transports = import ./transports.nix arguments;
  names = import ../names.nix;
  transport = import ../transport.nix;

  # Hosts that share something with an earlier one: name → what the earlier one is called.
  # Looked for once, over all hosts.
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

  sameKey = earlier (h: h.sshHostKey) (filter (h: h.sshHostKey != "") (attrValues t.hosts));

  key =
    n:
    when (sameKey ? ${n}) [
      (fault {
        id = "FL021";
        place = "hosts.${n}.sshHostKey";
        problem = "host ${sameKey.${n}} already has";
        value = t.hosts.${n}.sshHostKey;
        remedy = "each host proves itself with a key of its own: remove the copied keys in /etc/ssh and run ssh-keygen -A";
      })
    ];

  # What listens on a port of all addresses, which nothing else then has.
  programs =
    h:
    when (address.listensOnAll h) (
      map (kind: {
        what = "the ${kind} provider";
        attribute = "providerPort";
        protocol = "tcp";
        inherit (h.provider.${kind}) port;
      }) h.kinds
      ++ when (any (s: t.services.${s}.published) h.services) (
        map
          (on: {
            what = "the forwarder";
            attribute = "forwarderPort";
            inherit (on) protocol;
            port = h.forwarderPort;
          })
          (
            filter (on: transport.listens on.over h) [
              {
                over = "quic";
                protocol = "udp";
              }
              {
                over = "tcp";
                protocol = "tcp";
              }
            ]
          )
      )
    );

  # Services that rely on their port of 127.0.0.1.
  ports =
    n: h:
    twice
      {
        id = "FL022";
        key = s: toString s.port + (if s.protocol == "udp" then "/udp" else "");
        what = s: s.what or "service ${s.name}";
        place = s: "services.${s.name}.port";
        problem = other: "on host ${n}, ${other} already has";
        remedy = "give one of them another port, or, where one program answers for both, write its upstream";
      }
      (
        programs h
        ++ filter (s: s.port != null && !isInvalid s.port && clean.services.${s.name}.upstream == "") (
          map (s: t.services.${s}) h.services
        )
      );

  # Does a number stand twice in a sorted list?
  repeats = list: any (i: elemAt list i == elemAt list (i + 1)) (genList (i: i) (length list - 1));

  listeners =
    n: h:
    when (repeats (sort lessThan access.listenerKeys.${n})) (
      twice {
        id = "FL023";
        key = l: l.listen;
        what = l: names.short l.id;
        place = l: "hosts.${n}.loopback";
        problem = other: "${other} already has the listener";
        show = l: "${l.listen} of ${names.short l.id}";
        remedy = "give the host another or a wider loopback range, or one service another listenPort";
      } (access.reachEntries h ++ access.socks h)
    );

  covered =
    n: h:
    concatMap
      (
        p:
        let
          of = l: l.protocol or "tcp" == p.protocol && match ".*:${toString p.port}" l.listen != null;
        in
        map (
          l:
          fault {
            id = "FL023";
            place = "hosts.${n}.${p.attribute}";
            problem = "${p.what} would have the port of the local listener";
            value = "${l.listen} of ${names.short l.id}";
            remedy = "write another ${p.attribute}, or, in hosts.${n}.bind, the addresses on which others call this host";
          }
        ) (filter of (access.reachEntries h ++ access.socks h))
      )
      (
        filter (p: any (listenerKey: names.port listenerKey == p.port) access.listenerKeys.${n}) (
          programs h
        )
      );

  # A role that needs what the host does not have, held by the host or a service on it.
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
    of "hosts.${n}.roles" h
    ++ concatMap (s: of "services.${s}.roles" t.services.${s}) h.services
    ++ concatMap (
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
    when (h.callers != { } && !elem "" h.users) (
      unknown "FL015" "identity of this host" identities "hosts.${n}.callers" (attrNames h.callers)
    );

  grouped =
    n: h:
    when (h.group != "") (
      map (
        f:
        if substring 0 12 f.remedy == "did you mean" then
          f
        else
          f // { remedy = "${f.remedy}: write hostGroups.${lib.attribute h.group} = { }; for a new one"; }
      ) (unknown "FL016" "group of hosts" clean.hostGroups "hosts.${n}.group" [ h.group ])
    );
in
mapAttrs (
  n: written:
  let
    h = t.hosts.${n};
  in
  user "hosts.${n}.users" written.users
  ++ role "hosts.${n}.roles" written.roles
  ++ service "hosts.${n}.keeps" written.keeps
  ++ grouped n written
  ++ callers n written
  ++ addresses n h
  ++ key n
  ++ ports n h
  ++ listeners n h
  ++ covered n h
  ++ transports n h
  ++ needs n
  ++ capabilities n h
) clean.hosts
