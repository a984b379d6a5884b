# What listens on all addresses has its port of 127.0.0.1 too.
{ base, merge, ... }:
merge base {
  services.blog = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 8080;
  };
  services.zine = {
    host = "beta";
    port = 8080;
  };
  services.dns = {
    host = "beta";
    port = 53;
    protocol = "udp";
  };
  services.names = {
    host = "beta";
    port = 53;
    protocol = "udp";
  };
  services.api = {
    host = "alpha";
    port = 4600;
  };
  hosts.alpha.bind = "0.0.0.0";
  services.voice = {
    host = "beta";
    port = 4610;
    protocol = "udp";
  };
}
