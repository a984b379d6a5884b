# The formats of the language: what can stand for an attribute's value.
let
  inherit (builtins)
    all
    elem
    isBool
    isInt
    isString
    stringLength
    ;
  wrong = (import ./lib.nix).invalid;

  inherit (import ./types.nix)
    between
    listOf
    matches
    scalar
    ;

  inherit (import ./address.nix) machine;
  inherit (import ./names.nix) range;
  inherit (import ./addressform.nix)
    afterHost
    isHostPort
    isMachine
    isName
    isV4
    octet
    ;
  defaultLoopback = (import ./names.nix).loopback;

  string = scalar {
    want = "a string";
    hint = "put it in double quotes";
    ok = isString;
  };
  strings = listOf string;
  flag = scalar {
    want = "true or false";
    hint = "write true, or take it out";
    ok = isBool;
    zero = false;
  };
  name = scalar {
    want = "a name";
    hint = "write one, in double quotes";
    invalid = wrong.string;
    ok = isString;
  };
  port = between 1 65535 "a port";
  seconds = between 1 315360000 "seconds";
  timeOfDay = scalar {
    want = "a time of day, 00:00 to 23:59";
    hint = "write for example \"02:30\"";
    invalid = wrong.string;
    ok = matches "([01][0-9]|2[0-3]):[0-5][0-9]";
  };

  instance = scalar {
    want = "a short name: a lower-case letter, then letters, digits and hyphens, 14 characters at most";
    hint = "directories, units and accounts on the host are called florete_<instance>";
    ok = matches "[a-z]([a-z0-9-]{0,12}[a-z0-9])?";
  };

  word =
    {
      want,
      hint,
      re,
      most ? 4095,
      ...
    }@type:
    scalar ({ ok = v: matches re v && stringLength v <= most; } // type);

  address = scalar {
    want = "the IP address or lower-case DNS name of a machine, not below .rete, with a port only where a NAT forwards another";
    hint = "write for example \"192.0.2.1\", \"forge.example.org\" or, behind a NAT, \"203.0.113.5:14610\"";
    invalid = wrong.string;
    ok = v: isMachine v || isHostPort v && isMachine (machine v);
  };

  bind = scalar {
    want = "an IP address that the host has itself, without a port; 0.0.0.0 and :: are all";
    hint = "write for example \"10.0.0.5\", or nothing: then it listens on all of its addresses";
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
    ok = v: isName v && stringLength v <= 253 && matches ".*\\..*" v && !matches ".*\\.rete" v;
  };

  # RFC 6749, section 3.1.2: compared letter by letter, without a fragment.
  url = scalar {
    want = "an http or https URL of one host, at most 1000 characters (RFC 3986), without fragment";
    hint = "write for example \"https://wiki.example.org\"";
    ok = v: afterHost v != null;
  };

  forwarderAddress = scalar {
    want = "an address with a port";
    hint = "write for example \"192.0.2.1:4610\" or \"forge.blue.example:4610\"";
    invalid = wrong.string;
    ok = v: isHostPort v && isMachine (machine v);
  };

  # SPIFFE Federation, section 5.
  endpoint = scalar {
    want = "an https URL of one host, at most 1000 characters (RFC 3986), without fragment";
    hint = "write for example \"https://forge.blue.example:4605/federation/bundle\"";
    ok = v: matches "https://.*" v && afterHost v != null;
  };

  # SPIFFE-ID, section 2, of whatever implementation.
  spiffeID = scalar {
    id = "FL004";
    want = "a SPIFFE ID";
    hint = "write for example \"spiffe://blue.example/service/forge/florete-provider-federation\"";
    ok =
      v:
      matches "spiffe://[a-z0-9._-]+(/[A-Za-z0-9._-]+)+" v
      && stringLength v <= 2048
      && !matches ".*/\\.{1,2}(/.*)?" v;
  };

  # What follows the trust domain in the IDs that forwarders present.
  isIdentity =
    matches "(node|user|service)/${label}|service/${label}/${label}";
  label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";

  # OpenID Connect Discovery 1.0, section 3; the provider serves its pages at the root.
  issuer = scalar {
    want = "an http or https URL of one host and nothing after it";
    hint = "write for example \"https://auth.example.org\"";
    ok = v: afterHost v == "";
  };

  replicas = scalar {
    want = "a number of hosts from 1 to 1000, or \"all\"";
    hint = "write a whole number without quotes";
    invalid = wrong.number;
    ok = v: isInt v && v >= 1 && v <= 1000 || v == "all";
  };

  # Florete's own read the keys of the whole host.
  account = scalar {
    want = "an account name, none of Florete's own";
    hint = "write the name as in /etc/passwd";
    ok = v: matches "[A-Za-z_][A-Za-z0-9_.-]{0,31}" v && !matches "florete([_-].*)?" v;
  };

  caller = scalar {
    want = "an account name, a uid or a system unit's name";
    hint = "write a name in quotes, \"wiki.service\" for a unit, or a number without them";
    ok =
      v:
      isInt v && v >= 0 && v < 4294967295
      || matches "[A-Za-z_][A-Za-z0-9_.-]{0,31}" v
      || isService v;
  };

  # A unit of the system, by what no account ends in.
  isService = v: isString v && stringLength v <= 255 && matches "[A-Za-z0-9:_.@\\-]+\\.service" v;

  # Restarting some takes the whole host down.
  unit = scalar {
    want = "a systemd unit that the host outlives";
    hint = "write its full name, such as \"wiki.service\"";
    ok =
      v:
      isString v
      && stringLength v <= 255
      && matches "[A-Za-z0-9:_.@\\-]+\\.(service|socket|target|timer|path)" v
      && !matches "(systemd-)?(basic|default|emergency|exit|graphical|halt|hibernate|hybrid-sleep|kexec|multi-user|poweroff|reboot|rescue|shutdown|sleep|soft-reboot|suspend|suspend-then-hibernate|sysinit|umount|runlevel[0-6]|ctrl-alt-del)\\.(service|target)" v;
  };

  loopback = scalar {
    want = "a range of loopback addresses, 127.x.y.z/8 to /30";
    hint = "write for example \"127.64.0.0/10\"; bits after the prefix are zero";
    zero = defaultLoopback;
    ok = v: matches "127(\\.${octet}){3}/(8|9|[12][0-9]|30)" v && (range v).aligned;
  };

  trustDomain = scalar {
    id = "FL004";
    want = "a trust domain";
    hint = "use lower-case DNS labels with dots between them, such as \"demo.flor\"";
    ok =
      v:
      matches "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*" v
      && stringLength v <= 180
      && !isV4 v;
  };

  clusterName = word {
    id = "FL004";
    want = "a cluster name";
    hint = "use lower-case letters, digits and inner hyphens";
    re = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
    invalid = "(unnamed)";
  };

  tags = listOf (word {
    want = "a word";
    hint = "use lower-case letters, digits and inner hyphens";
    re = "[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?";
  });

  # Where among the host groups a host belongs: a name, or several from the outside in.
  groupPath = word {
    id = "FL004";
    want = "a group of hosts";
    hint = "use DNS labels with slashes between them, such as \"eu/fra\"";
    re = "([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*)?";
  };

  upstream = scalar {
    want = "host:port, not below .rete, or unix:/path";
    hint = "write for example \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/run/wiki/http.sock\"";
    invalid = wrong.string;
    ok =
      v:
      matches "unix:(/[A-Za-z0-9_.@:-]+)+" v && stringLength v <= 112
      || isHostPort v && !matches ".*\\.rete:.*" v;
  };

  reference = word {
    want = "the name of a file below the provider's directory of files, at most 255 characters";
    hint = "write for example \"outline/smtp-password\"";
    re = "[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*";
    most = 255;
  };

  mode = word {
    want = "permissions that let its owner alone change it";
    hint = "write for example \"0400\"";
    re = "0[0-7][0145]{2}";
  };
in
{
  inherit (import ./keyformats.nix) pem signingKey spiffeBundle sshKey;
  inherit
    account
    address
    bind
    caller
    clusterName
    endpoint
    flag
    forwarderAddress
    groupPath
    isIdentity
    issuer
    loopback
    instance
    isService
    mode
    name
    port
    reference
    replicas
    seconds
    spiffeID
    string
    strings
    tags
    timeOfDay
    tlsName
    trustDomain
    unit
    upstream
    url
    word
    ;
}
