# The same number on another host, and where the forwarder has another port.
{ base, merge, ... }:
merge base {
  hosts.beta.forwarderPort = 4999;
  services = {
    one = {
      host = "beta";
      upstream = "127.0.0.1:4610";
      listenPort = 80;
    };
    two = {
      host = "alpha";
      upstream = "192.0.2.77:4610";
      listenPort = 81;
    };
    four = {
      host = "beta";
      upstream = "unix:/run/wiki:4999";
      listenPort = 82;
    };
  };
}
