# Faults of the rules of an ingress for public names, and of names that are redirected.
{
  access,
  clean,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    ;
  inherit (import ../lib) isInvalid;
  inherit (import ../lib/names.nix) isInside;
  inherit (import ../resolve/publicnames.nix) ownerIn owners serves;
  inherit (lib)
    attribute
    excluded
    fault
    faultIf
    host
    show
    when
    ;

  # Reports whether a host reaches a TCP port of a service.
  reaches =
    n: port: h:
    any (
      i:
      i.value.entry.port or "" == port
      && !(i.value.entry ? protocol)
      && access.reachableOn.${h.name} ? ${i.name}
    ) t.services.${n}.reachables;

  path =
    n: s: p:
    let
      place = "services.${n}.ingress.paths.${attribute p.name}";
      serving = filter (h: serves h s && reaches n "http" h) (attrValues t.hosts);
      without = filter (h: !reaches n p.port h) serving;
      wrong = problem: remedy: [
        (fault {
          id = "FL169";
          place = "${place}.port";
          inherit problem remedy;
          value = show p.port;
        })
      ];
    in
    when (p.deny && p.from != [ ]) (excluded "keep one of the two" "${place}.deny" "from")
    ++ when (p.deny && p.port != "") (excluded "keep one of the two" "${place}.deny" "port")
    ++ when (p.port != "" && !isInvalid p.port) (
      if !s.ports ? ${p.port} || s.ports.${p.port}.protocol == [ "udp" ] then
        wrong "the service has no TCP port of this name in ports:"
          "write services.${n}.ports.${attribute p.port} = …;, or take the port out"
      else
        concatMap (
          h:
          wrong "ingress ${h.name} reaches the service, and not its port"
            "give host ${h.name}, or its reverse proxy, a role that reaches ${n}:${p.port}"
        ) without
    );

  unwritten = (import ../language/service.nix).zero.ingress;
in
{
  service =
    n: s:
    when (s.ingress != unwritten) (
      when (s.tlsName == "") (
        excluded "write tlsName = \"…\";, or take the rules out" "services.${n}.ingress" "no tlsName"
      )
      ++ host "services.${n}.ingress.hosts" s.ingress.hosts
      ++ map (
        h:
        fault {
          id = "FL168";
          place = "services.${n}.ingress.hosts";
          problem = "strangers come in only at hosts with an ingress, not at";
          value = "host ${h}";
          remedy = "write hosts.${h}.capabilities = [ \"ingress\" ];, or name another host";
        }
      ) (filter (h: t.hosts ? ${h} && !elem "ingress" t.hosts.${h}.capabilities) s.ingress.hosts)
      ++ concatMap (path n s) (attrValues s.ingress.paths)
    );

  redirects =
    let
      has = owners (attrValues clean.services);
      ownerOf = ownerIn has;
    in
    concatMap (
      name:
      let
        place = "redirects.${attribute name}";
        to = clean.redirects.${name};
      in
      faultIf (has ? ${name}) {
        id = "FL027";
        inherit place;
        problem = "service ${ownerOf name} already has";
        value = show name;
        remedy = "take the redirect out, or the name of the service";
      }
      ++ faultIf (isInside name) {
        id = "FL004";
        inherit place;
        problem = "a name below .rete leads to the forwarder, not to an ingress:";
        value = show name;
        remedy = "write a public name, or an alias of the service";
      }
      ++ faultIf (!isInvalid to && to != "" && (clean.redirects ? ${to} || ownerOf to == null)) {
        id = "FL170";
        inherit place;
        problem =
          if to == name then
            "the name would be redirected to itself:"
          else if clean.redirects ? ${to} then
            "the target is a name that is redirected, too:"
          else
            "no public service has the name";
        value = show to;
        remedy = "write the tlsName of a public service, or one of its tlsAliases";
      }
    ) (attrNames clean.redirects);
}
