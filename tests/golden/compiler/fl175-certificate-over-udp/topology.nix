# Nothing asks for a certificate over UDP.
{ base, merge, ... }:
merge base {
  services.names = {
    host = "beta";
    ports.dns = {
      port = 5353;
      listenPort = 53;
      protocol = [
        "tcp"
        "udp"
      ];
    };
  };
  outside.scanner = {
    mtls = true;
    via = "alpha";
    reaches = [ "names" ];
  };
}
