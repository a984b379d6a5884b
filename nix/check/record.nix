# Faults and warnings of services whose SSH sessions are recorded. The sshd of the host records them
# behind the forwarder, so it must be the upstream, and cannot tell apart two services that lead to
# it.
{
  access,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    concatMap
    elem
    elemAt
    filter
    genList
    head
    length
    match
    ;
  inherit (import ../lib) isInvalid;
  inherit (import ../lib/names.nix) machine;
  inherit (lib)
    excluded
    fault
    faultIf
    show
    twice
    ;

  # The port at which the sshd of a host serves a service, or null.
  port = s: match "127\\.[0-9.]+:([0-9]+)" s.upstream;
  isRecorded = s: s.record.recipients != [ ];

  # Reports whether a service leads to a port of its host, in whatever protocol.
  leadsTo =
    host: port: s:
    any (
      p:
      match "unix:.*" p.upstream == null
      && match ".*:${port}" p.upstream != null
      && (machine p.upstream == null || elem (machine p.upstream) host.machines)
    ) s.ports;

  # The other services on a host that lead to the same sshd and are recorded otherwise. Of two
  # that are recorded, the second by name is at fault.
  others =
    s: host:
    filter (
      o:
      o.name != s.name
      && o.published
      && leadsTo t.hosts.${host} (head (port s)) o
      && o.record != s.record
      && (!isRecorded o || o.name < s.name)
    ) t.hosts.${host}.running;
in
{
  # service :: String -> Service -> [Fault]
  service =
    n: written:
    let
      s = t.services.${n};
      place = "services.${n}.record";
      without = remedy: excluded remedy place;
      differing = concatMap (
        host:
        map (o: {
          inherit host;
          inherit (o) name;
        }) (others s host)
      ) s.hosts;
      first = head differing;
    in
    twice {
      id = "FL199";
      key = r: r.key;
      place = r: "${place}.recipients[${toString r.at}]";
      what = _: "";
      problem = _: "the same recipient is in the list twice:";
      remedy = "take one of them out";
    } (
      filter (r: !isInvalid r.key) (
        genList (at: {
          inherit at;
          key = elemAt written.record.recipients at;
        }) (length written.record.recipients)
      )
    )
    ++ (
      if s.several then
        without "take it out, or write the SSH server as a service of its own" "ports"
      else if s.protocol != "ssh" then
        without "take it out: only SSH sessions are recorded" "protocol = ${show s.protocol}"
      else if !s.published then
        without "take it out: nobody reaches it" "visibility = \"host\""
      else if port s == null then
        [
          (fault {
            id = "FL198";
            inherit place;
            problem = "only the sshd of the host itself records, and the upstream of ${n} is";
            value = show s.upstream;
            remedy = "take services.${n}.upstream out, or record";
          })
        ]
      else
        faultIf (differing != [ ]) {
          id = "FL200";
          inherit place;
          problem = "the sshd at port ${head (port s)} of ${first.host} is recorded otherwise for";
          value = "service ${first.name}";
          remedy = "write the same protocol and record in both, or let another sshd serve one of them";
        }
    );

  # warnings :: String -> Service -> [Fault]
  warnings =
    n: _:
    let
      s = t.services.${n};
      withoutLogins = filter (h: !access.logins.allows s h) s.hosts;
    in
    faultIf (s.protocol == "ssh" && s.published && port s != null && withoutLogins != [ ]) {
      id = "FL148";
      place = "services.${n}.record";
      problem = "it has an effect only where a role permits logins, and none does on";
      value = "host ${head withoutLogins}";
      remedy = "write roles.<name>.logins.${lib.attribute n}, or take it out";
    };
}
