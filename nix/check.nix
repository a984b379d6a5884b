# What is wrong with a topology beyond the shape of its parts. `clean` is what was
# written, `topology` has its references followed. `scope` is the part of `clean` to be
# looked at: all of it, or what concerns one host.
{ clean, topology, access }: scope:
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
    groupBy
    head
    intersectAttrs
    length
    lessThan
    map
    sort
    tail
    toJSON
    ;
  inherit (import ./fault.nix) fault;
  inherit (import ./text.nix) secret show suggest;
  t = topology;

  hosts = intersectAttrs scope.hosts t.hosts;
  services = intersectAttrs scope.services t.services;

  when = condition: faults: if condition then faults else [ ];
  over = set: f: concatMap (name: f name set.${name}) (attrNames set);

  # Names that are not in a set. Empty ones and private keys were reported already.
  unknown = id: what: set: place: names: map
    (n: fault {
      inherit id place;
      problem = "unknown ${what}";
      value = show n;
      remedy = suggest what n (attrNames set);
    })
    (filter (n: n != "" && !set ? ${n} && !secret n) names);

  host = unknown "FL010" "host" t.hosts;
  service = unknown "FL011" "service" t.services;
  user = unknown "FL012" "user" t.users;
  role = unknown "FL013" "role" t.roles;
  group = unknown "FL014" "group" t.groups;

  references =
    over scope.hosts (n: h:
      user "hosts.${n}.users" h.users
      ++ role "hosts.${n}.roles" h.roles
      ++ callers n h)
    ++ over scope.services (n: s:
      host "services.${n}.host" [ s.host ]
      ++ host "services.${n}.hosts" s.hosts
      ++ role "services.${n}.roles" s.roles)
    ++ over scope.users (n: u: role "users.${n}.roles" u.roles)
    ++ over scope.roles (n: r: service "roles.${n}.services" r.services ++ group "roles.${n}.groups" r.groups)
    ++ over scope.groups (n: members: service "groups.${n}" members)
    ++ over clean.providers (n: p: host "providers.${n}.hosts" p.hosts);

  callers = n: h:
    let
      keys = map (i: { name = i.key; value = null; }) access.identities.${n};
    in
    when (h.callers != { } && !elem "" h.users)
      (unknown "FL015" "identity of this host" (builtins.listToAttrs keys) "hosts.${n}.callers" (attrNames h.callers));

  # Of the things that share a key, all but the first are faults.
  twice = { id, key, place, problem, show ? key, remedy, what ? (e: e.name) }: list:
    let
      groups = groupBy key list;
      later = same: map
        (e: fault {
          inherit id remedy;
          place = place e;
          problem = problem (what (head same));
          value = show e;
        })
        (tail same);
    in
    when (length (attrNames groups) != length list) (concatMap later (attrValues groups));

  addressed = filter (h: h.address != "" && h.address != "?") (attrValues hosts);

  duplicates =
    twice
      {
        id = "FL020";
        key = h: h.forwarderAddress;
        place = h: "hosts.${h.name}.address";
        problem = other: "host ${other} already has";
        remedy = "give one of them another address, or, behind one address, another forwarderPort";
      }
      addressed
    ++ twice
      {
        id = "FL020";
        key = h: h.providerAddress;
        place = h: "hosts.${h.name}.providerPort";
        problem = other: "provider ${other} already has";
        remedy = "give one of them another address, or, behind one address, another providerPort";
      }
      (filter (h: h.kinds != [ ]) addressed)
    ++ twice
      {
        id = "FL021";
        key = h: h.sshHostKey;
        place = h: "hosts.${h.name}.sshHostKey";
        problem = other: "host ${other} already has";
        remedy = "each host proves itself with a key of its own: remove the copied keys in /etc/ssh and run ssh-keygen -A";
      }
      (filter (h: h.sshHostKey != "") (attrValues hosts))
    ++ over hosts (n: h: twice
      {
        id = "FL022";
        key = s: toString s.port;
        place = s: "services.${s.name}.port";
        problem = other: "on host ${n}, service ${other} already has";
        remedy = "give one of them another port, or, where one program answers for both, write its upstream";
      }
      (filter (s: s.port != -1 && clean.services.${s.name}.upstream == "") (map (s: t.services.${s}) h.services)))
    ++ over hosts (n: h:
      when (repeats (sort lessThan access.spots.${n})) (twice
        {
          id = "FL023";
          key = l: l.listen;
          what = l: l.id;
          place = l: "hosts.${n}.loopback";
          problem = other: "${other} already has the listener";
          show = l: "${l.listen} of ${l.id}";
          remedy = "give the host another or a wider loopback range, or one service another listenPort";
        }
        (access.reachable h ++ access.socks h)));

  # Does a number stand twice in a sorted list?
  repeats = list: any (i: elemAt list i == elemAt list (i + 1)) (genList (i: i) (length list - 1));

  placement = over scope.services (n: s:
    when (s.host != "" && s.hosts != [ ]) [
      (fault {
        id = "FL009";
        place = "services.${n}.hosts";
        problem = "given together with";
        value = "host = ${show s.host}";
        remedy = "keep one of the two";
      })
    ]);

  # A role with a reference to nothing was reported for that.
  roles = over scope.roles (n: r:
    let
      dangling = any (s: !t.services ? ${s}) (r.services ++ concatMap (g: t.groups.${g} or [ ]) r.groups)
        || any (g: !t.groups ? ${g}) r.groups;
      hidden = filter (s: !t.services.${s}.published) (r.services ++ concatMap (g: t.groups.${g}) r.groups);
    in
    when (!dangling && access.services.${n} == [ ] && !elem n [ "node" "operator" ]) [
      (fault {
        id = "FL030";
        place = "roles.${n}";
        problem = "the role reaches";
        value = "nothing";
        remedy =
          if hidden == [ ] then "name a service in roles.${n}.services or a group with members in roles.${n}.groups"
          else "set visibility = \"cluster\" for ${concatStringsSep ", " hidden}, which visibility = \"host\" hides";
      })
    ]);

  missing = kind: why: write: when (clean.providers.${kind}.hosts == [ ]) [
    (fault {
      id = "FL031";
      place = "providers.${kind}";
      problem = "no host provides";
      value = show kind;
      remedy = "${why}: write providers.${kind} = ${write};";
    })
  ];
  single = filter (s: s.sso.mode == "oidc") (attrValues services);

  providers =
    when (clean.hosts != { }) (missing "cert" "every host needs a certificate" "{ hosts = [ \"…\" ]; }")
    ++ when (single != [ ]) (missing "oidc" "services.${(head single).name}.sso needs it"
      "{ hosts = [ \"…\" ]; issuer = \"https://…\"; }");

  absent =
    when (clean.trust.roots == [ ]) [
      (fault {
        id = "FL007";
        place = "trust.roots";
        problem = "hosts would trust";
        value = "no certificate at all";
        remedy = "make a root with `florctl ca init` and write trust.roots = [ ./ca.crt ];";
      })
    ]
    ++ when (clean.trust.keys == [ ] && clean.providers.config.hosts != [ ]) [
      (fault {
        id = "FL008";
        place = "trust.keys";
        problem = "hosts would refuse every document from providers.config, for they pin";
        value = "no key";
        remedy = "make one with `nix key generate-secret` and write its public half, trust.keys = [ \"name:base64\" ];";
      })
    ]
    ++ over hosts (n: h: when (h.address == "" && (h.kinds != [ ] || any (s: t.services.${s}.published) h.services)) [
      (fault {
        id = "FL003";
        place = "hosts.${n}";
        problem = "missing attribute";
        value = "address";
        remedy = "others call this host: write address = \"192.0.2.1\"; or its DNS name";
      })
    ])
    ++ over scope.services (n: s:
      when (s.host == "" && s.hosts == [ ]) [
        (fault {
          id = "FL003";
          place = "services.${n}";
          problem = "missing attribute";
          value = "host";
          remedy = "write host = ${toJSON (if clean.hosts == { } then "…" else head (attrNames clean.hosts))};";
        })
      ]
      ++ when (s.sso.mode == "oidc" && s.sso.redirectURIs == [ ]) [
        (fault {
          id = "FL003";
          place = "services.${n}.sso";
          problem = "missing attribute";
          value = "redirectURIs";
          remedy = "write redirectURIs = [ \"https://…\" ]; with the address the service calls its callback";
        })
      ]);
in
references ++ duplicates ++ placement ++ roles ++ providers ++ absent
