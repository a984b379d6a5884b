# Faults of each host.
{ access, clean, needs, t, tools, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    genericClosure
    groupBy
    head
    length
    lessThan
    listToAttrs
    map
    mapAttrs
    sort
    substring
    ;
  inherit (tools) fault role show twice unknown user when;
  names = import ../names.nix;

  set = list: listToAttrs (map (name: { inherit name; value = null; }) list);

  # Hosts that share something with an earlier one: name → what the earlier one is called.
  # Looked for once, over all hosts.
  earlier = key: hosts:
    let
      groups = groupBy key hosts;
      others = same: map (h: { inherit (h) name; value = (head same).name; }) (filter (h: h.name != (head same).name) same);
    in
    if length (attrNames groups) == length hosts then { }
    else listToAttrs (concatMap others (attrValues groups));

  addressed = filter (h: h.address != "" && h.address != "?") (attrValues t.hosts);
  spelled = h: address: port:
    if substring 0 1 address == "[" then names.hostPort (names.spelled h.address) port else address;
  sameAddress = earlier (h: spelled h h.forwarderAddress h.forwarderPort) addressed;
  sameProvider = earlier (h: spelled h h.providerAddress h.providerPort) (filter (h: h.kinds != [ ]) addressed);
  sameKey = earlier (h: h.sshHostKey) (filter (h: h.sshHostKey != "") (attrValues t.hosts));

  taken = { id, others, place, what, value, remedy }: n: when (others ? ${n}) [
    (fault {
      inherit id remedy;
      place = "hosts.${n}.${place}";
      problem = "${what} ${others.${n}} already has";
      value = value t.hosts.${n};
    })
  ];

  address = taken {
    id = "FL020";
    others = sameAddress;
    place = "address";
    what = "host";
    value = h: h.forwarderAddress;
    remedy = "give one of them another address, or, behind one address, another forwarderPort";
  };
  provider = taken {
    id = "FL020";
    others = sameProvider;
    place = "providerPort";
    what = "provider";
    value = h: h.providerAddress;
    remedy = "give one of them another address, or, behind one address, another providerPort";
  };
  key = taken {
    id = "FL021";
    others = sameKey;
    place = "sshHostKey";
    what = "host";
    value = h: h.sshHostKey;
    remedy = "each host proves itself with a key of its own: remove the copied keys in /etc/ssh and run ssh-keygen -A";
  };

  # Where all are so, all hosts are one machine.
  loops = h: substring 0 4 h.address == "127." || elem h.address [ "::1" "localhost" ];
  apart = any (h: !loops h) addressed;
  loop = n: h: when (apart && h.address != "" && loops h) [
    (fault {
      id = "FL038";
      place = "hosts.${n}.address";
      problem = "other hosts would reach themselves at";
      value = show h.address;
      remedy = "write the address or name at which they reach this one";
    })
  ];

  # Services that rely on their port of 127.0.0.1.
  ports = n: h: twice
    {
      id = "FL022";
      key = s: toString s.port + (if s.protocol == "udp" then "/udp" else "");
      place = s: "services.${s.name}.port";
      problem = other: "on host ${n}, service ${other} already has";
      remedy = "give one of them another port, or, where one program answers for both, write its upstream";
    }
    (filter (s: s.port != null && s.port != -1 && clean.services.${s.name}.upstream == "") (map (s: t.services.${s}) h.services));

  # Does a number stand twice in a sorted list?
  repeats = list: any (i: elemAt list i == elemAt list (i + 1)) (genList (i: i) (length list - 1));

  listeners = n: h: when (repeats (sort lessThan access.spots.${n})) (twice
    {
      id = "FL023";
      key = l: l.listen;
      what = l: names.short l.id;
      place = l: "hosts.${n}.loopback";
      problem = other: "${other} already has the listener";
      show = l: "${l.listen} of ${names.short l.id}";
      remedy = "give the host another or a wider loopback range, or one service another listenPort";
    }
    (access.reachable h ++ access.socks h));

  # Need → the needs it waits for. Only files and sso say so themselves.
  waiting = n: h:
    let
      given = filter (s: s.sso.after != [ ] || any (f: f.after != [ ]) (attrValues s.files)) (map (s: t.services.${s}) h.services);
      after = listToAttrs (map (need: { name = need.id; value = need.after; }) needs.${n});
      reached = id: map (e: e.key) (genericClosure {
        startSet = map (key: { inherit key; }) after.${id};
        operator = e: map (key: { inherit key; }) (after.${e.key} or [ ]);
      });
      circular = filter (id: elem id (reached id)) (attrNames after);
      places = s:
        map (f: { place = "services.${s.name}.files.${f}.after"; inherit (s.files.${f}) after; }) (attrNames s.files)
        ++ [ { place = "services.${s.name}.sso.after"; inherit (s.sso) after; } ];
    in
    when (given != [ ]) (
      concatMap (p: unknown "FL019" "need of host ${n}" after p.place p.after) (concatMap places given)
      ++ when (circular != [ ]) [
        (fault {
          id = "FL033";
          place = "hosts.${n}";
          problem = "needs that wait for each other, so that none is ever fetched:";
          value = concatStringsSep ", " circular;
          remedy = "take one of them out of the other's after";
        })
      ]);

  sameNeed = n: h: twice
    {
      id = "FL024";
      key = f: f.need;
      place = f: "services.${f.service}.files.${f.file}";
      what = f: "file ${f.file} of service ${f.service}";
      problem = other: "on host ${n}, ${other} already has the need";
      remedy = "give one of the files another name";
    }
    (concatMap
      (s: map (file: { inherit file; service = s; need = "file-${s}-${file}"; }) (attrNames t.services.${s}.files))
      h.services);

  # A role that needs what the host does not have, held by the host or a service on it.
  capabilities = n: h:
    let
      of = place: holder: concatMap
        (r: map
          (c: fault {
            id = "FL034";
            inherit place;
            problem = "role ${r} needs a host with the capability";
            value = show c;
            remedy = "write it in hosts.${n}.capabilities if the host has it, or take the role away";
          })
          (filter (c: !elem c h.capabilities) (t.roles.${r}.requires or [ ])))
        holder.roles;
    in
    of "hosts.${n}.roles" h
    ++ concatMap (s: of "services.${s}.roles" t.services.${s}) h.services
    ++ concatMap
      (kind: map
        (c: fault {
          id = "FL035";
          place = "providers.${kind}.hosts";
          problem = "host ${n} lacks the capability";
          value = show c;
          remedy = "write it in hosts.${n}.capabilities if the host has it, or name another host";
        })
        (filter (c: !elem c h.capabilities) t.providers.${kind}.requires))
      h.kinds;

  callers = n: h:
    let identities = set (map (i: i.key) access.identities.${n}); in
    when (h.callers != { } && !elem "" h.users)
      (unknown "FL015" "identity of this host" identities "hosts.${n}.callers" (attrNames h.callers));

  grouped = n: h: when (h.group != "") (map
    (f: if substring 0 12 f.remedy == "did you mean" then f
      else f // { remedy = "${f.remedy}: write inventory.${tools.attribute h.group} = { }; for a new one"; })
    (unknown "FL016" "group of hosts" clean.inventory "hosts.${n}.group" [ h.group ]));

  absent = n: h: when (h.address == "" && (h.kinds != [ ] || any (s: t.services.${s}.published) h.services)) [
    (fault {
      id = "FL003";
      place = "hosts.${n}";
      problem = "missing attribute";
      value = "address";
      remedy = "others call this host: write address = \"192.0.2.1\"; or its DNS name";
    })
  ];
in
mapAttrs
  (n: written:
    let h = t.hosts.${n}; in
    user "hosts.${n}.users" written.users
    ++ role "hosts.${n}.roles" written.roles
    ++ grouped n written
    ++ callers n written
    ++ loop n h ++ address n ++ provider n ++ key n
    ++ ports n h ++ listeners n h ++ sameNeed n h ++ waiting n h
    ++ capabilities n h
    ++ absent n h)
  clean.hosts
