# The ports of a service that has several: by name, each a number or a record.
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
      port = default "where it listens on its host, on 127.0.0.1" null port;
      listenPort = default "the port callers use; the same as `port` unless written" null port;
      upstream = of "where it listens when that is not 127.0.0.1, as of services" upstream;
      protocol = default "what it speaks, one or several; `http` is carried as `tcp`" [ "tcp" ] (
        oneOrMore protocol
      );
      identity = of "how it learns who calls, as of services; of what is not `udp`" (enum [
        "none"
        "proxy-v2"
        "http"
      ]);
    }
  )
)
