{ base, merge, ... }:
merge base {
  services.dns = {
    host = "beta";
    listenPort = 53;
    upstream = "unix:/run/dns.sock";
    protocol = "udp";
  };
  roles.reader.services = [
    "dns"
    "wiki"
  ];
}
