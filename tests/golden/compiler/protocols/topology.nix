# One port, two protocols: only UDP is in documents.
{ base, merge, ... }:
merge base {
  services.dns = {
    host = "beta";
    port = 53;
    protocol = "udp";
  };
  services.dns-long = {
    host = "beta";
    port = 53;
  };
  services.clock = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 123;
    protocol = "udp";
    scope = "node";
  };
  services.wiki.protocol = "http";
  hosts.alpha.loopback = "127.1.0.0/24";
  roles.node.services = [
    "clock"
    "dns"
    "dns-long"
  ];
}
