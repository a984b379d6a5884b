# The ports of a service that has more than one, by name. Each port is a number or a record.
let
  inherit (builtins) elem;
  inherit (import ./types)
    default
    enum
    instead
    named
    of
    oneOrMore
    record
    scalar
    ;
  inherit (import ./formats) port upstream;
  inherit (import ../lib) invalid;
  protocols = [
    "tcp"
    "http"
    "udp"
  ];
  protocol = scalar {
    want = "\"tcp\", \"http\" or \"udp\"";
    hint = "write protocol = [ \"tcp\" \"udp\" ]; for both";
    example = "udp";
    json.enum = protocols;
    zero = "tcp";
    invalid = invalid.string;
    ok = v: elem v protocols;
  };
in
named { what = "port"; } (
  instead "port" port (
    record "a port" {
      port = default "Port at which it listens on 127.0.0.1 of its host." null port;
      listenPort = default "Port that callers use. By default the same as `port`." null port;
      upstream = of "Where it listens if that is not 127.0.0.1, as for services." upstream;
      protocol =
        default "Protocol of the port, one or several. `http` is carried as `tcp`." [ "tcp" ]
          (oneOrMore protocol);
      identity = of "How the service learns who calls at this port, as for services. Not for `udp`." (enum [
        "none"
        "proxy-v2"
        "http"
      ]);
    }
  )
)
