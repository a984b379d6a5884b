# One machine calls over TCP, the other is known by its address.
{ base, merge, ... }:
merge base {
  services.names = {
    host = "beta";
    port = 5353;
    listenPort = 53;
    protocol = "udp";
  };
  outside.scanner = {
    mtls = true;
    via = "alpha";
    reaches = [ "wiki" ];
  };
  outside.sensor = {
    addresses = [ "10.0.5.20" ];
    via = "alpha";
    reaches = [ "names" ];
  };
}
