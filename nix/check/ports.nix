# Faults of ports that two programs of a host would share: name → host → faults.
{
  access,
  t,
  lib,
  ...
}@arguments:
let
  inherit (builtins)
    any
    concatMap
    elem
    filter
    foldl'
    groupBy
    head
    lessThan
    mapAttrs
    match
    sort
    toString
    ;
  inherit (import ../lib) invalid;
  inherit (lib) fault twice when;
  address = import ../resolve/address.nix;
  names = import ../lib/names.nix;
  transport = import ../resolve/transport.nix;
  public = import ./publicports.nix arguments;

  # The programs of Florete that listen on a host.
  programs =
    n: h:
    let
      # Programs with default ports come first, so that the fault is at a written port.
      usual = filter (kind: !t.providers.${kind} ? port) h.kinds;
      own = filter (kind: t.providers.${kind} ? port) h.kinds;
    in
    map (kind: {
      what = "the ${kind} provider";
      attribute = "providerPort";
      place = if t.providers.${kind} ? port then "providers.${kind}.port" else "hosts.${n}.providerPort";
      protocol = "tcp";
      inherit (h.provider.${kind}) port;
    }) (usual ++ own)
    ++ when (h.relay || any (s: s.published) h.running) (
      map
        (on: {
          what = "the forwarder";
          attribute = "forwarderPort";
          place = "hosts.${n}.forwarderPort";
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
    ++ when (t.store.shared && elem n t.store.hosts) (
      map
        (member: {
          inherit (member) what port;
          attribute = "providers.store.port";
          place = "providers.store.port";
          protocol = "tcp";
        })
        [
          {
            what = "the store";
            inherit (t.store) port;
          }
          {
            what = "the store, for its other members,";
            port = t.store.port + 1;
          }
        ]
    );
  # The ports of 127.0.0.1 on which a service relies, by protocol.
  relied =
    s:
    if s ? process then
      [ ]
    else
      filter (p: p.relies != null && p.relies != invalid.number) s.ports;
  protocol = p: if p.carried ? protocol then "udp" else "tcp";
  # The same ports with the places where they are written.
  listening =
    s:
    map (
      p:
      {
        inherit (s) name;
        port = p.relies;
        protocol = protocol p;
      }
      // (
        if p.name == "" then
          { }
        else
          {
            what = "port ${p.name} of service ${s.name}";
            place = "services.${s.name}.ports.${lib.attribute p.name}";
          }
      )
    ) (relied s);

  # Reports whether a list contains a number twice.
  repeats =
    list:
    foldl' (last: n: if n == last || last == null then null else n) invalid.number (sort lessThan list)
    == null;

  # Port and protocol as one number, for the quick comparison.
  number = protocol: port: if protocol == "udp" then port + 65536 else port;

  # Faults of Florete's programs, and services that rely on the same port of 127.0.0.1, which a
  # program on all addresses also has. A quick comparison of numbers shows that most hosts have
  # none.
  taken =
    n: h: onAll: ours:
    let
      numbers =
        map (p: number p.protocol p.port) ours
        ++ concatMap (s: map (p: number (protocol p) p.relies) (relied s)) h.running;
      again = twice {
        id = "FL022";
        key = s: toString s.port + (if s.protocol == "udp" then "/udp" else "");
        what = s: s.what or "service ${s.name}";
        place = s: s.place or "services.${s.name}.port";
        problem = other: "on host ${n}, ${other} already has";
        remedy = "give one of them another port, or, where one program answers for both, write its upstream";
      };
    in
    when (repeats numbers) (
      (if onAll then [ ] else again ours)
      ++ again ((if onAll then ours else [ ]) ++ concatMap listening h.running)
    );

  listeners =
    n: h:
    let
      key = l: l.listen + (if l ? protocol then "/${l.protocol}" else "");
      all = access.reachEntries h ++ access.socks h;
      # Two ports of one service are a fault of that service, reported elsewhere.
      whose = l: "${l.id} ${key l}";
      first = mapAttrs (_: head) (groupBy whose all);
    in
    twice {
      id = "FL023";
      inherit key;
      what = l: names.short l.id;
      place = _: "hosts.${n}.loopback";
      problem = other: "${other} already has the listener";
      show = l: "${l.listen} of ${names.short l.id}";
      remedy = "give the host another or a wider loopback range, or one service another listenPort";
    } (filter (l: l.port or "" == first.${whose l}.port or "") all);

  # A program that listens on all addresses leaves its port to no other.
  covered =
    keys: n: h: ours:
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
            inherit (p) place;
            problem = "${p.what} would have the port of the local listener";
            value = "${l.listen} of ${names.short l.id}";
            remedy = "write another ${p.attribute}, or, in hosts.${n}.bind, the addresses on which others call this host";
          }
        ) (filter of (access.reachEntries h ++ access.socks h))
      )
      (
        let
          ports = map names.port keys;
        in
        filter (p: elem p.port ports) ours
      );
in
n: h:
let
  keys = access.listenerKeys h;
  onAll = address.listensOnAll h;
  ours = programs n h;
in
taken n h onAll (ours ++ public.programs n)
++ public.host n
++ (if repeats keys then listeners n h else [ ])
++ (if onAll then covered keys n h ours else [ ])
