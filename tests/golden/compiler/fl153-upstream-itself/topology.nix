# The forwarder at a loopback address, at its host's address and as one of several ports, and the
# socket of credentials.
{ base, merge, ... }:
merge base {
  services = {
    one = {
      host = "beta";
      upstream = "127.0.0.1:4610";
      listenPort = 80;
    };
    two = {
      hosts = [
        "alpha"
        "beta"
      ];
      upstream = "192.0.2.2:4610";
      listenPort = 81;
    };
    three = {
      host = "beta";
      ports.dns = {
        upstream = "[::1]:4610";
        listenPort = 53;
        protocol = [
          "tcp"
          "udp"
        ];
      };
    };
    four = {
      host = "beta";
      upstream = "unix:/run/florete/credentials.sock";
      listenPort = 82;
    };
  };
}
