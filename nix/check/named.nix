# Faults of the names of services in a role or a group of them: those that are not there, and
# parts of services that lead to nothing.
# { t, unknown } -> place -> [name] -> [Fault]
{ t, unknown }:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    head
    length
    map
    match
    tail
    toJSON
    ;
  inherit (import ../fault.nix) fault;
  inherit (import ../lib.nix) toSet when;
  names = import ../names.nix;
  part = import ../part.nix;
  inherit (import ../text.nix)
    password
    secret
    show
    suggest
    ;

  # What was meant is one host's: a suggestion never opens more.
  own =
    f: n:
    let
      dotted = match "([a-z0-9-]+)\\.([a-z0-9.-]+)" n;
      slashed = match "([a-z0-9-]+)/([a-z0-9-]+)" n;
      base = if dotted != null then head dotted else elemAt slashed 1;
      at = if dotted != null then elemAt dotted 1 else head slashed;
      written = "${base}@${at}";
    in
    if dotted == null && slashed == null || !t.services ? ${base} then
      f
    else
      f
      // {
        remedy =
          if scoped t.services.${base} && elem at t.services.${base}.hosts then
            "write ${toJSON written}, which is the one there"
          else
            "${toJSON base} is the service on all of its hosts: write that if all are meant, or make a service of the one";
      };
  scoped =
    s:
    elem s.scope [
      "both"
      "node"
    ];

  # What does not lead to a part of a service that is there.
  partial =
    place: n:
    let
      of = part.split n;
      inherit (t.parts.${n}) hosts readings;
      inherit (of) at;
      # What follows the service in it.
      rest =
        (if at == null then "" else "@${at}") + (if of.port == null then "" else ":${of.port}");
      fits =
        s:
        (at == null || scoped s) && (of.port == null || elem of.port (map (p: p.name) s.ports));
      has = t.services.${of.service};
      bad = id: problem: remedy: [
        (fault {
          inherit id place problem remedy;
          value = show n;
        })
      ];
      on = concatStringsSep ", " t.services.${of.service}.hosts;
      end = if of.port == null then "" else ":${of.port}";
      written = map (h: "${of.service}@${h}${end}") t.services.${of.service}.hosts;
      # One over two protocols is there twice.
      ports = attrNames (toSet (map (p: p.name) has.ports));
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
      map (
        f:
        f
        // {
          value = show n;
          remedy = suggest "service" n (map (s: s + rest) (filter (s: fits t.services.${s}) (attrNames t.services)));
        }
      ) (unknown "FL011" "service" t.services place [ of.service ])
    else if of.port != null && !has.several then
      bad "FL088" "the service has one port, which has no name, and not"
        "write ${toJSON start}, or give services.${of.service} ports"
    else if of.port != null && !elem of.port ports then
      bad "FL087" "the service has no such port:"
        (suggest "port" n (map (p: "${start}:${p}") ports))
    else if !t.parts ? ${n} then
      bad "FL115" "the service is one on all of its hosts, and has no part"
        "give services.${of.service} scope = \"node\" or \"both\" so that each host has its own, or write ${toJSON (of.service + end)} for all of it"
    else if at == null then
      [ ]
    else if readings == [ ] then
      bad "FL113" "no host, group of hosts or tag is called like what follows the @ in"
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
in
place:
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
    partial place n
  else
    map (f: own f n) (unknown "FL011" "service" t.services place [ n ])
)
