# Resolves names that stand for a part of a service. If a service has an instance on each of its
# hosts, "shell@forge" is the instance on the host forge, and "shell@eu" are the instances on the
# hosts in the group or with the tag eu. Such a name is ambiguous if it has several of these
# meanings and they lead to different hosts. If a service has several ports, "wiki:metrics" is one
# of them, and "shell@eu:metrics" is a port of the instances in eu.
let
  inherit (builtins)
    all
    attrNames
    attrValues
    concatLists
    concatMap
    elem
    elemAt
    filter
    head
    listToAttrs
    match
    tail
    ;
  inherit (import ../lib) when;

  on = among: reading: filter (h: elem h reading.hosts) among;
  agree = among: readings: all (r: on among r == on among (head readings)) (tail readings);
in
rec {
  # "shell@eu:http" → { service = "shell"; at = "eu"; port = "http"; }, with null for missing parts;
  # null if the name has another form.
  # split :: String -> { service, at, port } | null
  split =
    written:
    let
      part = match "([^@:]*)(@([^:]*))?(:(.*))?" written;
    in
    if part == null || elemAt part 2 == null && elemAt part 4 == null then
      null
    else
      {
        service = head part;
        at = elemAt part 2;
        port = elemAt part 4;
      };

  # The parts that roles and groups of services name. A part without readings does not exist; a part
  # whose readings disagree has no hosts.
  # parts ::
  #   { clean, services, hosts, outward } -> { written = { service, at, port, readings, hosts, ids }; }
  parts =
    {
      clean,
      services,
      hosts,
      outward,
    }:
    let
      written = filter (n: !clean.services ? ${n}) (
        concatMap (r: r.services ++ r.except ++ attrNames r.logins) (attrValues clean.roles)
        ++ concatLists (attrValues clean.serviceGroups)
      );

      having = of: map (h: h.name) (filter of (attrValues hosts));
      reading = what: hosts: [ { inherit what hosts; } ];
      readings =
        at:
        let
          grouped = having (h: h.group != "" && elem at (outward h.group));
          tagged = having (h: elem at h.tags);
        in
        when (hosts ? ${at}) (reading "host" [ at ])
        ++ when (clean.hostGroups ? ${at} || grouped != [ ]) (reading "group of hosts" grouped)
        ++ when (tagged != [ ]) (reading "tag" tagged);

      resolve =
        name:
        let
          of = split name;
          s = services.${of.service};
          read = readings of.at;
          some = if read != [ ] && agree s.hosts read then on s.hosts (head read) else [ ];
        in
        {
          inherit name;
          value =
            {
              inherit (of) service at port;
            }
            // (
              if of.at == null then
                {
                  readings = [ ];
                  inherit (s) hosts;
                  ids = map (i: i.name) s.instances;
                }
              else
                {
                  readings = read;
                  hosts = some;
                  ids = map s.idOn some;
                }
            );
        };
      # A service with one instance for all hosts has no parts.
      scoped =
        name:
        let
          of = split name;
        in
        of != null
        && services ? ${of.service}
        && (
          of.at == null
          || elem services.${of.service}.scope [
            "both"
            "node"
          ]
        )
        && (of.port == null || clean.services.${of.service}.ports or { } ? ${of.port});
    in
    listToAttrs (map resolve (filter scoped written));
}
