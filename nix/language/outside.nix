# Callers without an agent. Their roles are named "florete-outside-<name>".
let
  inherit (import ./types)
    listOf
    named
    of
    record
    required
    ;
  inherit (import ./formats)
    flag
    name
    network
    strings
    ;
in
named
  {
    what = "outside caller";
    max = 47;
  }
  (
    record "an outside caller" {
      addresses = of "Addresses or networks of the machine. Required without `mtls`. With `mtls`, the machine must have one of them, too." (listOf network);
    mtls = of "The machine proves with a client certificate that it is `outside/<name>` of the trust domain. `florctl identity issue --id outside/<name>` issues the certificate. Its connections to `via` are TLS, which ends there." flag;
      via = required "Host that listens for it, at the ports that the services have for callers." "\"gate\"" name;
      reaches = of "Services that it reaches, written as in `roles.<name>.services`." strings;
    }
  )
