# The formats of addresses, names and IDs. A value that satisfies a predicate is also accepted by
# the programs in Go.
let
  inherit (builtins)
    elem
    fromJSON
    head
    length
    match
    split
    stringLength
    substring
    ;
  wrong = (import ../../lib).invalid;

  inherit (import ../types) matches scalar;
  inherit (import ../../resolve/address.nix) machine;
  inherit (import ../../lib/text.nix) contains;
  names = import ../../lib/names.nix;
  inherit (names) isInside range spelled;
  inherit ((import ../../lib/constants.nix).spiffe)
    hostnamePattern
    labelPattern
    reservedPrefix
    suffix
    ;

  octet = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

  # Reports whether a value has the form of an IP address.
  # isV4, isV6 :: Any -> Bool
  isV4 = matches "(${octet}\\.){3}${octet}";
  isV6 =
    v:
    matches "([0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}" v
    && !contains ":::" v
    && !matches ":[^:].*|.*[^:]:" v
    && (length (split "::" v) == 3 || length (split "::" v) == 1 && length (split ":" v) == 15);

  # The last label of a name is not a number: 10.0.0.300 is a mistake, not a name.
  # isName :: Any -> Bool
  isName = matches hostnamePattern;

  # Addresses of one machine: not the unspecified address, multicast or broadcast.
  isUnicastV4 = matches "(25[0-4]|24[0-9]|22[0-3]|2[01][0-9]|1[0-9][0-9]|[1-9][0-9]?)(\\.${octet}){3}";
  isUnicastV6 =
    v:
    isV6 v
    && !matches "[0:]+|[Ff]([Ff][0-9A-Fa-f]|[Ee][89ABab])[0-9A-Fa-f]:.*" v
    && (v == "::1" || !matches "(0:){5}(0|ffff):.*" (spelled v) || matches "(0:){7}1" (spelled v));

  # Without link-local addresses, which do not identify a machine.
  # isMachine :: Any -> Bool
  isMachine =
    v:
    isUnicastV4 v
    || isUnicastV6 v && !matches "[Ff][Ee][89AaBb].:.*" v
    || isName v && stringLength v <= 253 && !isInside v;

  # "127.0.0.1:8080", "[::1]:8080", "db.example.org:5432"
  # isHostPort :: Any -> Bool
  isHostPort =
    v:
    let
      six = match "\\[([^]]*)]:([1-9][0-9]{0,4})" v;
      four = match "([^:]*):([1-9][0-9]{0,4})" v;
    in
    matches ".*:[1-9][0-9]{0,4}" v
    && fromJSON (head (match ".*:([0-9]+)" v)) < 65536
    && (six != null && isV6 (head six) || four != null && (isV4 (head four) || isName (head four)));

  address = scalar {
    want = "the IP address or lower-case DNS name of a machine, not below .rete, with a port only where a NAT forwards another";
    hint = "write for example \"192.0.2.1\", \"forge.example.org\" or, behind a NAT, \"203.0.113.5:14610\"";
    example = "192.0.2.1";
    invalid = wrong.string;
    ok = v: isMachine v || isHostPort v && isMachine (machine v);
  };

  bind = scalar {
    want = "an IP address that the host has itself, without a port; 0.0.0.0 and :: are all";
    hint = "write for example \"10.0.0.5\", or nothing: then it listens on all of its addresses";
    example = "10.0.0.5";
    invalid = wrong.string;
    ok =
      v:
      isMachine v && !isName v
      || elem v [
        "0.0.0.0"
        "::"
      ];
  };

  # A name below .rete leads to the forwarder, not to an ingress.
  tlsName = scalar {
    want = "a public DNS name, lower-case, of two labels or more and not below .rete";
    hint = "write for example \"wiki.example.org\"";
    example = "wiki.example.org";
    ok = v: isName v && stringLength v <= 253 && matches ".*\\..*" v && !isInside v;
  };

  # The same, or a wildcard: "*.apps.example.org" (RFC 9525, section 6.3).
  publicName = scalar {
    want = "a public DNS name as of tlsName, or such a name after \"*.\"";
    hint = "write for example \"docs.example.org\" or \"*.apps.example.org\"";
    invalid = wrong.string;
    ok =
      v:
      tlsName.valid v
      || matches "\\*\\..*" v && stringLength v <= 253 && isName (below v) && !isInside ".${below v}";
  };
  below = substring 2 (-1);

  # An alias: a label, optionally after "*.", below the trust domain.
  alias = scalar {
    want = "a lower-case DNS label that does not begin with \"florete-\", or such a label after \"*.\"";
    hint = "write for example \"docs\" or \"*.apps\"";
    invalid = wrong.string;
    ok = v: matches "(\\*\\.)?${labelPattern}" v && !matches "(\\*\\.)?${reservedPrefix}.*" v;
  };

  forwarderAddress = scalar {
    want = "an address with a port";
    hint = "write for example \"192.0.2.1:4610\" or \"forge.blue.example:4610\"";
    example = "192.0.2.1:4610";
    invalid = wrong.string;
    ok = v: isHostPort v && isMachine (machine v);
  };

  # SPIFFE-ID, section 2, of any implementation.
  spiffeID = scalar {
    id = "FL004";
    want = "a SPIFFE ID";
    hint = "write for example \"spiffe://blue.example/service/forge/florete-provider-federation\"";
    example = "spiffe://blue.example/service/forge/florete-provider-federation";
    invalid = wrong.string; # with profile https_web there is none
    ok =
      v:
      matches "spiffe://[a-z0-9._-]+(/[A-Za-z0-9._-]+)+" v
      && stringLength v <= 2048
      && !matches ".*/\\.{1,2}(/.*)?" v;
  };

  # The path of IDs that forwarders present.
  isIdentity =
    matches "(node|user|service)/${labelPattern}|service/${labelPattern}/${labelPattern}";

  loopback = scalar {
    want = "a range of loopback addresses, 127.x.y.z/8 to /30";
    hint = "write for example \"127.64.0.0/10\"; bits after the prefix are zero";
    example = "127.64.0.0/10";
    zero = names.loopback;
    ok = v: matches "127(\\.${octet}){3}/(8|9|[12][0-9]|30)" v && (range v).aligned;
  };

  upstream = scalar {
    want = "host:port, not below .rete, or unix:/path of at most 107 bytes";
    hint = "write for example \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/run/wiki/http.sock\"";
    example = "127.0.0.1:8080";
    invalid = wrong.string;
    ok =
      v:
      matches "unix:(/[A-Za-z0-9_.@:-]+)+" v && stringLength v <= 112
      || isHostPort v && !matches ".*\\${suffix}:.*" v;
  };

  # An address at which a provider reaches a server on its own host.
  isLocal = v: isHostPort v && matches "127\\..*|\\[::1]:.*" v;
  local = scalar {
    want = "a loopback address with port";
    hint = "write for example \"127.0.0.1:3000\"";
    example = "127.0.0.1:3000";
    ok = isLocal;
  };
  localOrSocket = scalar {
    want = "unix:/path of at most 107 bytes, or a loopback address with port";
    hint = "write for example \"unix:/run/postgresql/.s.PGSQL.5432\" or \"127.0.0.1:5432\"";
    example = "unix:/run/postgresql/.s.PGSQL.5432";
    ok = v: isLocal v || matches "unix:(/[A-Za-z0-9_.@:-]+)+" v && stringLength v <= 112;
  };
in
{
  inherit
    address
    alias
    bind
    forwarderAddress
    isIdentity
    isV4
    isV6
    local
    localOrSocket
    loopback
    publicName
    spiffeID
    tlsName
    upstream
    ;
}
