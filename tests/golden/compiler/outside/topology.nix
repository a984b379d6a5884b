# Machines without an agent reach services through a host, and are known by their addresses alone.
{ base, merge, ... }:
merge base {
  hosts.alpha.bind = [ "192.0.2.1" ];
  services.wiki.identity = "proxy-v2";
  services.mqtt = {
    host = "beta";
    port = 1883;
    accessLog = "full";
  };
  services.names = {
    host = "beta";
    port = 5353;
    listenPort = 53;
    protocol = "udp";
  };
  outside.scanner = {
    addresses = [ "10.0.5.20" ];
    via = "alpha";
    reaches = [
      "wiki"
      "mqtt"
    ];
  };
  outside.sensors = {
    addresses = [
      "10.0.6.0/24"
      "2001:db8:6::/64"
    ];
    via = "alpha";
    reaches = [
      "mqtt"
      "names"
    ];
  };
}
