# The public ports of a service, by name. Each port is a number or a record.
let
  inherit (import ./types)
    default
    instead
    listOf
    named
    of
    record
    ;
  inherit (import ./formats)
    network
    port
    strings
    tlsName
    ;
  limits = import ./limits.nix;
in
named { what = "public port"; } (
  instead "port" port (
    record "a public port" {
      port = default "Port at which the ingress listens on its addresses." null port;
      hosts = of "Hosts with an ingress that listen. By default all that reach the service." strings;
      serverNames = of "TLS server names for this service, so that several services share the port. The ingress reads the name, and the TLS connection ends at the service." (
        listOf tlsName
      );
      from = of "Networks from which callers may connect. By default anyone may." (listOf network);
      limits = limits 65536 "Limits for each address of a caller, or each /64 network of IPv6.";
    }
  )
)
