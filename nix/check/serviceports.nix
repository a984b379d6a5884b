# Faults of the ports of a service.
{
  lib,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    head
    length
    mapAttrs
    substring
    ;
  inherit (import ../lib) distinct isInvalid;
  inherit (import ../lib/names.nix) entrance;
  portsOf = import ../resolve/ports.nix;
  inherit (lib)
    excluded
    faultIf
    missing
    show
    twice
    when
    ;

  written =
    protocols:
    if length protocols == 1 then
      show (head protocols)
    else
      "[ ${concatStringsSep " " (map show protocols ++ [ "]" ])}";
  both = excluded "keep one of the two";
  socket = of: substring 0 5 of.upstream == "unix:";

  port =
    place: of:
    when (of.port == null && of.upstream == "") (missing place "port" "write port = 8080;")
    ++ when (of.port == null && of.listenPort == null && of.upstream != "") (
      missing place "listenPort" "write the port that callers use, listenPort = 80;"
    )
    ++ when (of.port != null && socket of) (both "${place}.port" "upstream = ${show of.upstream}");

  protocol =
    place: of: protocols:
    faultIf (elem "udp" protocols && socket of) {
      id = "FL037";
      place = "${place}.protocol";
      problem = "a Unix socket takes connections only, not";
      value = show "udp";
      remedy = "write where it takes datagrams, upstream = \"127.0.0.1:53\";";
    };

  # Announcing callers in HTTP headers needs a protocol with requests; a header before the bytes
  # needs one with connections.
  identity =
    place: of: protocols:
    let
      given = "protocol = ${written protocols}";
    in
    when (of.identity == "http" && elem "tcp" protocols) (
      excluded "write protocol = \"http\";, or identity = \"proxy-v2\";" "${place}.identity" given
    )
    ++ when (of.identity != "none" && protocols == [ "udp" ]) (
      excluded "take it out: callers of datagrams are looked up, flor whois --udp" "${place}.identity"
        given
    );

  all =
    place: of: protocols:
    port place of
    ++ (if of.upstream == "" then [ ] else protocol place of protocols)
    ++ (if of.identity == "none" then [ ] else identity place of protocols);

  # Attributes that belong to each port if the service has several.
  beside =
    n: s:
    concatLists (
      attrValues (
        mapAttrs
          (
            attribute: unwritten:
            when (s.${attribute} != unwritten) (
              excluded "write it in each port that it is about, services.${n}.ports.<name>.${attribute}"
                "services.${n}.${attribute}"
                "ports"
            )
          )
          {
            port = null;
            listenPort = null;
            upstream = "";
            protocol = "tcp";
            identity = "none";
          }
      )
    );

  # A wrong protocol has been reported.
  protocols =
    place: p:
    faultIf
      (
        !any isInvalid p.protocol
        && (
          p.protocol == [ ]
          || distinct p.protocol != p.protocol
          || elem "tcp" p.protocol && elem "http" p.protocol
        )
      )
      {
        id = "FL131";
        place = "${place}.protocol";
        problem = "a port is carried as TCP, as UDP, or as both, each once, not as";
        value = written p.protocol;
        remedy = "write protocol = \"tcp\";, \"http\" or \"udp\", or [ \"tcp\" \"udp\" ]";
      };

  # Each number may be used once, because the ports share one address.
  taken =
    n: s:
    twice {
      id = "FL089";
      key = p: toString p.number + (if p.carried ? protocol then "/udp" else "/tcp");
      what = p: "port ${p.name}";
      place = p: "services.${n}.ports.${lib.attribute p.name}";
      problem = other: "${other} of the service already has, for callers,";
      remedy = "give one of them another listenPort";
    } (filter (p: !isInvalid p.number) (portsOf s));

  entered =
    n: s:
    let
      enters = s.ports ? ${entrance} && s.ports.${entrance}.protocol != [ "udp" ];
    in
    faultIf (s.visibility == "public" && !enters && (s.publicPorts == { } || s.tlsName != "")) {
      id = "FL129";
      place = "services.${n}.ports";
      problem = "an ingress passes strangers to the port that is called ${entrance}, over TCP, and the ports are";
      value = concatStringsSep ", " (attrNames s.ports);
      remedy = "call the port of web pages ${entrance}, or make what strangers reach a service of its own";
    };
in
n: s:
if s.ports == { } then
  all "services.${n}" s [ s.protocol ]
else
  beside n s
  ++ concatMap (
    p:
    let
      place = "services.${n}.ports.${lib.attribute p.name}";
    in
    protocols place p ++ all place p p.protocol
  ) (attrValues s.ports)
  ++ taken n s
  ++ entered n s
