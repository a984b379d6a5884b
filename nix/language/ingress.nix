# The record of ingress rules, which say which requests to the public names of a service an ingress
# passes on.
let
  inherit (import ./types)
    atMost
    between
    default
    named
    of
    record
    ;
  inherit (import ./formats)
    flag
    network
    strings
    word
    ;
  portName = word {
    want = "the name of a port";
    hint = "write a name in ports, such as \"ws\"";
    example = "ws";
    re = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
    most = 63;
    invalid = (import ../lib).invalid.string;
  };
  from = of "Networks whose clients may send requests. By default anyone may." (atMost 64 network);
in
record "ingress rules" {
  hosts = of "Hosts with an ingress that serve the names. By default all that reach the service." strings;
  inherit from;
  paths =
    of
      "Rules for requests by path. `\"/admin\"` is `/admin` and all below it, and `/administrator` is not. The longest path decides."
      (
        named
          {
            what = "path";
            max = 255;
            re = "(/|(/\\.?[a-z0-9_~-][a-z0-9._~-]*)+)";
            remedy = "write it in lower case, which stands for any case, with letters, digits, and . _ ~ -, such as \"/admin\"";
          }
          (
            record "a path" {
              deny = of "Nobody reaches the path." flag;
              inherit from;
              port = of "Port of the service, one of `ports`, to which these requests go." portName;
            }
          )
      );
  hsts =
    default
      "Seconds for which browsers that have seen the site use only HTTPS, with the header `Strict-Transport-Security`."
      null
      (between 1 63072000 "seconds");
  maxBody = default "Largest body of a request, in MiB. By default any." null (
    between 1 1048576 "a size in MiB"
  );
  timeout =
    default "Seconds that the ingress waits for the service between two reads. By default an hour. Caddy does not apply it to gRPC." null
      (between 1 86400 "seconds");
}
