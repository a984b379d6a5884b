# Faults of each service.
{
  access,
  clean,
  kinds,
  shapes,
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
    concatStringsSep
    elem
    filter
    foldl'
    mapAttrs
    stringLength
    ;
  inherit (import ../lib) isInvalid;
  inherit (import ../resolve/remote.nix) isRemote;
  inherit (import ../lib/names.nix) called entrance;
  inherit ((import ../lib/constants.nix).spiffe) suffix;
  until = (import ./until.nix arguments).faults;
  names = import ./servicenames.nix arguments;
  inherit (lib)
    excluded
    fault
    faultIf
    host
    role
    show
    when
    ;
  inherit (import ./placement.nix arguments) isNamed where;
  ports = import ./serviceports.nix arguments;
  public = import ./publicports.nix arguments;
  rules = import ./ingress.nix arguments;
  itself = import ./itself.nix arguments;
  logins = import ./logins.nix arguments;
  record = import ./record.nix arguments;
  # Reports whether the service is one port of 127.0.0.1 that does not learn its callers.
  isPlain = s: s.port != null && s.upstream == "" && s.identity == "none" && s.ports == { };
  ofKinds = map (k: k.service) (filter (k: k ? service) kinds);

  # Services where people open sessions. The ports are those that clients assume.
  usual = {
    ssh = 22;
    rdp = 3389;
    vnc = 5900;
  };
  remote =
    n: s:
    let
      place = "services.${n}";
      protocol = "protocol = ${show s.protocol}";
    in
    when (s.identity != "none") (
      excluded "take it out: a server of this protocol reads no header" "${place}.identity" protocol
    )
    ++ when (s.ports != { }) (
      excluded "write each server as a service of its own, with port = ${
        toString usual.${s.protocol}
      };" "${place}.ports" protocol
    )
    ++ when (s.tlsName != "") (
      excluded "take it out: an ingress takes in HTTP there; strangers would need publicPorts"
        "${place}.tlsName"
        protocol
    )
    ++ when (s.protocol == "ssh") (logins.service n);

  # The Workload API gives the certificate to processes that act as the service on each of its
  # hosts.
  workload =
    n: s:
    when s.workloadApi (
      map (
        h:
        fault {
          id = "FL075";
          place = "services.${n}.workloadApi";
          problem = "no account or unit acts under its identity on host ${h}, found";
          value = "true";
          remedy = "write user = \"…\"; for the account that it runs as, or hosts.${h}.callers.\"service/${n}\" = [ \"${n}.service\" ];";
        }
      ) (filter (h: !any (i: i.key == "service/${n}") access.acting.${h}) t.services.${n}.hosts)
    );

  hosts =
    n: s:
    when (s.host != "") (host "services.${n}.host" [ s.host ]) ++ host "services.${n}.hosts" s.hosts;

  roles =
    n: s:
    role "services.${n}.roles" s.roles
    ++ until "services.${n}" s
    ++ when (elem "node" s.roles) [ (lib.reserved "services.${n}.roles" "node") ];

  limits =
    n: s:
    when (s.visibility == "host" && (import ../access/limits.nix).any s.limits) (
      excluded "take them out: nobody reaches it" "services.${n}.limits" "visibility = \"host\""
    );

  # The length of the name that people type (RFC 1035 section 2.3.4), with the longest host name.
  longest =
    stringLength ".${t.trustDomain}${suffix}."
    + foldl' (most: h: if stringLength h > most then stringLength h else most) 0 (attrNames t.hosts);
  isShort = n: stringLength n + longest <= 253;
  dialled =
    n:
    concatMap (
      h:
      let
        name = called "${n}${if t.services.${n}.scope != "cluster" then ".${h}" else ""}" t.trustDomain;
      in
      faultIf (stringLength name > 253) {
        id = "FL025";
        place = "services.${n}";
        problem = "a DNS name has at most 253 characters, that of this service";
        value = toString (stringLength name);
        remedy = "shorten its name, that of host ${h}, or the trust domain";
      }
    ) t.services.${n}.hosts;

  # Hosts with an ingress whose proxy reaches the service.
  entrancesOf =
    s: filter (h: (import ../resolve/publicnames.nix).serves h s) (attrValues t.hosts);
  ingress =
    n: s:
    let
      inherit (t.services.${n}) shared;
      entrances = entrancesOf s;
      # The names by which it reaches the service.
      entered = map (i: i.name) (
        filter (
          i: (shared == null || i.value.entry.id == shared) && i.value.entry.port or entrance == entrance
        ) t.services.${n}.reachables
      );
      open = h: any (id: access.reachableOn.${h.name} ? ${id}) entered;
    in
    faultIf (s.visibility == "public" && entered != [ ] && !any open entrances) {
      id = "FL036";
      place = "services.${n}.visibility";
      problem = "no ingress reaches the service, which is";
      value = show s.visibility;
      remedy =
        if entrances == [ ] then
          "declare capabilities = [ \"ingress\" ] on the host that takes in strangers, and give it or its reverse proxy a role that reaches ${n}"
        else
          "give ${
            concatStringsSep " or " (map (h: h.name) entrances)
          }, or a service there, a role that reaches ${n}";
    };
in
# A service that is no set has been reported. Because there are many services, each check first
# compares whether the service uses the feature at all.
mapAttrs (
  n: s:
  if isInvalid s.host && isInvalid s.replicas then
    [ ]
  else
    (if s.hosts == [ ] && clean.hosts ? ${s.host} then [ ] else hosts n s)
    ++ (if s.roles == [ ] && s.until == { } then [ ] else roles n s)
    ++ (if isNamed s then [ ] else where n s)
    # Ports that are no set have been reported.
    ++ (if isPlain s || s.ports == { } && any (f: f.place == "services.${n}.ports") shapes.services.${n} then [ ] else ports n s ++ itself n)
    ++ (if isRemote s.protocol then remote n s else [ ])
    ++ (if s.record.recipients == [ ] then [ ] else record.service n s)
    ++ (if s.workloadApi then workload n s else [ ])
    ++ (if s.visibility == "host" then limits n s else [ ])
    ++ (if isShort n then [ ] else dialled n)
    ++ (if s.tlsName == "" && s.tlsAliases == [ ] && s.aliases == [ ] then [ ] else names n s)
    ++ (if s.visibility == "public" && (s.publicPorts == { } || s.tlsName != "") then ingress n s else [ ])
    ++ (if s.publicPorts == { } then [ ] else public.service n s)
    ++ rules.service n s
    ++ (if t.wanting ? ${n} then concatMap (k: k n s) ofKinds else [ ])
) clean.services
