# Faults of names of services: unknown services, parts that do not exist, and parts where only whole
# services are allowed.
# { t, unknown } -> { parts, whole :: place -> [name] -> [Fault] }
{ t, unknown }:
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
    head
    length
    match
    tail
    toJSON
    ;
  inherit (import ../lib/fault.nix) fault;
  inherit (import ../lib) when;
  names = import ../lib/names.nix;
  part = import ../resolve/part.nix;
  inherit (import ../lib/text.nix)
    password
    secret
    show
    suggest
    ;
  meant = import ./meant.nix { inherit t; };
  unknownService =
    place: n:
    map (
      _:
      fault {
        id = "FL011";
        inherit place;
        problem = "unknown service";
        value = show n;
        remedy = meant.remedy n;
      }
    ) (unknown "FL011" "service" t.services place [ n ]);

  # Faults of a part of a service that exists.
  partial =
    place: n:
    let
      of = part.split n;
      inherit (t.parts.${n}) hosts readings;
      inherit (of) at;
      has = t.services.${of.service};
      bad = id: problem: remedy: [
        (fault {
          inherit id place problem remedy;
          value = show n;
        })
      ];
      # Only known words are shown, in case the text is a password.
      turned = if of.port == null then null else match "([a-z0-9-]+)@([a-z0-9./-]+)" of.port;
      atEnd = turned != null && elem (elemAt turned 1) (meant.places has);
      isPlace =
        p: t.hosts ? ${p} || any (h: elem p h.tags || elem p (t.outward h.group)) (attrValues t.hosts);
      on = concatStringsSep ", " t.services.${of.service}.hosts;
      end = if of.port == null then "" else ":${of.port}";
      written = map (p: "${of.service}@${p}${end}") (meant.places has);
      ports = meant.ports has;
      start = if at == null then of.service else "${of.service}@${at}";
    in
    if t.elsewhere ? ${n} then
      [ ]
    else if
      at != null && (t.federated ? ${at} || t.clusters ? ${at}) && t.parts.${n}.readings or [ ] == [ ]
    then
      bad "FL135" "${if t.federated ? ${at} then "federated" else "clusters"}.${at} declares no such service:" (
        suggest "service of ${at}" n (filter (e: t.elsewhere.${e}.cluster == at) (attrNames t.elsewhere))
      )
    else if !t.services ? ${of.service} then
      unknownService place n
    else if of.port != null && !has.several then
      bad "FL088" "the service has one port, which has no name, and not"
        "write ${toJSON (if atEnd then "${start}@${elemAt turned 1}" else start)}, or give services.${of.service} ports"
    else if turned != null && elem (head turned) ports && isPlace (elemAt turned 1) then
      map (f: f // { value = toJSON n; }) (
        bad "FL087" "the host comes before the port, not after it:" (meant.remedy n)
      )
    else if of.port != null && !elem of.port ports then
      bad "FL087" "the service has no such port:"
        (suggest "port" n (map (p: "${start}:${p}") ports))
    else if !t.parts ? ${n} then
      bad "FL115" "the service is one on all of its hosts, and has no part"
        "give services.${of.service} scope = \"node\" or \"both\" so that each host has its own, or write ${toJSON (of.service + end)} for all of it"
    else if at == null then
      [ ]
    else if readings == [ ] then
      bad "FL113" "no host, group of hosts or tag has the name after the @ in"
        (suggest "such service" n written)
    else if hosts == [ ] && length readings > 1 then
      bad "FL114"
        "${toJSON at} is the name of a ${concatStringsSep " and of a " (map (r: r.what) readings)}, of different hosts, in"
        "give the ${(head (tail readings)).what} another name"
    else
      when (hosts == [ ]) (
        bad "FL113" "the service is not there:"
          "it is on ${if on == "" then "no host" else on}: write one of these, or take it out"
      );

  instead = {
    ${names.cache} =
      "serviceGroups = [ \"nix-cache\" ]; for who reads there, \"nix-cache-write\" for who adds paths";
    ${names.control} =
      "serviceGroups = [ \"control-plane\" ]; for who reads there, \"control-plane-write\" for who acts";
  };
  named = n: (part.split n).service or n;
  each =
    isPart: place:
    concatMap (
      n:
      if t.services ? ${n} && !instead ? ${n} then
        [ ]
      else if instead ? ${named n} then
        [
          (fault {
            id = "FL005";
            inherit place;
            problem = "reserved name";
            value = show n;
            remedy = "write ${instead.${named n}}";
          })
        ]
      else if part.split n != null && !secret n && !password n then
        isPart place n
      else
        unknownService place n
    );
in
{
  # Names of services and of their parts.
  parts = each partial;
  # Names of services only.
  whole = each (
    place: n:
    if t.services ? ${named n} then
      [
        (fault {
          id = "FL011";
          inherit place;
          problem = "a whole service belongs here, not a part of one:";
          value = show n;
          remedy = "write ${toJSON (named n)}";
        })
      ]
    else
      unknown "FL011" "service" t.services place [ n ]
  );
}
