# The formats of addresses, URLs and IDs in the language.
let
  inherit (builtins) elem stringLength substring;
  wrong = (import ../../lib).invalid;

  inherit (import ../types) matches scalar;
  inherit (import ../../resolve/address.nix) machine;
  inherit (import ../../lib/names.nix) isInside range;
  inherit ((import ../../lib/constants.nix).spiffe) labelPattern reservedPrefix suffix;
  inherit (import ./addressform.nix)
    afterHost
    isHostPort
    isMachine
    isName
    octet
    ;
  defaultLoopback = (import ../../lib/names.nix).loopback;

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

  # The same, or all names with one label before it: "*.apps.example.org" (RFC 9525, section 6.3).
  publicName = scalar {
    want = "a public DNS name as of tlsName, or such a name after \"*.\"";
    hint = "write for example \"docs.example.org\" or \"*.apps.example.org\"";
    invalid = wrong.string;
    ok =
      v:
      tlsName.valid v
      || matches "\\*\\..*" v && stringLength v <= 253 && isName (below v) && !matches "(.*\\.)?rete" (below v);
  };
  below = substring 2 (-1);

  # Another name inside: a label, or one after "*.", below the trust domain.
  alias = scalar {
    want = "a lower-case DNS label that does not begin with \"florete-\", or such a label after \"*.\"";
    hint = "write for example \"docs\" or \"*.apps\"";
    invalid = wrong.string;
    ok = v: matches "(\\*\\.)?${labelPattern}" v && !matches "(\\*\\.)?${reservedPrefix}.*" v;
  };

  # RFC 6749, section 3.1.2: compared letter by letter, without a fragment.
  url = scalar {
    want = "an http or https URL of one host, at most 1000 characters (RFC 3986), without fragment";
    hint = "write for example \"https://wiki.example.org\"";
    example = "https://wiki.example.org";
    ok = v: afterHost v != null;
  };

  forwarderAddress = scalar {
    want = "an address with a port";
    hint = "write for example \"192.0.2.1:4610\" or \"forge.blue.example:4610\"";
    example = "192.0.2.1:4610";
    invalid = wrong.string;
    ok = v: isHostPort v && isMachine (machine v);
  };

  # SPIFFE Federation, section 5.
  endpoint = https "https://forge.blue.example:4605/federation/bundle";

  # RFC 8555, section 7.1.1.
  acmeDirectory = https "https://acme-v02.api.letsencrypt.org/directory";

  https =
    example:
    scalar {
      want = "an https URL of one host, at most 1000 characters (RFC 3986), without fragment";
      hint = "write for example \"${example}\"";
      inherit example;
      ok = v: matches "https://.*" v && afterHost v != null;
    };

  # SPIFFE-ID, section 2, of whatever implementation.
  spiffeID = scalar {
    id = "FL004";
    want = "a SPIFFE ID";
    hint = "write for example \"spiffe://blue.example/service/forge/florete-provider-federation\"";
    example = "spiffe://blue.example/service/forge/florete-provider-federation";
    invalid = wrong.string; # none is written with profile https_web
    ok =
      v:
      matches "spiffe://[a-z0-9._-]+(/[A-Za-z0-9._-]+)+" v
      && stringLength v <= 2048
      && !matches ".*/\\.{1,2}(/.*)?" v;
  };

  # What follows the trust domain in the IDs that forwarders present.
  isIdentity =
    matches "(node|user|service)/${labelPattern}|service/${labelPattern}/${labelPattern}";

  # OpenID Connect Discovery 1.0, section 3; the provider serves its pages at the root.
  issuer = scalar {
    want = "an http or https URL of one host and nothing after it";
    hint = "write for example \"https://auth.example.org\"";
    example = "https://auth.example.org";
    ok = v: afterHost v == "";
  };

  loopback = scalar {
    want = "a range of loopback addresses, 127.x.y.z/8 to /30";
    hint = "write for example \"127.64.0.0/10\"; bits after the prefix are zero";
    example = "127.64.0.0/10";
    zero = defaultLoopback;
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

  # Where a provider reaches a server on its own host.
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
    acmeDirectory
    address
    alias
    bind
    endpoint
    forwarderAddress
    isIdentity
    issuer
    local
    localOrSocket
    loopback
    publicName
    spiffeID
    tlsName
    upstream
    url
    ;
}
