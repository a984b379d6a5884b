# The same number over another protocol, and at another service.
{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    ports = {
      http = 80;
      quic = {
        port = 80;
        protocol = "udp";
      };
      metrics = {
        port = 9100;
        listenPort = 9101;
      };
    };
  };
}
