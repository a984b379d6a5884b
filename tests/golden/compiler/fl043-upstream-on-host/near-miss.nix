# Upstreams on the service's own host, on a host that shares its address, and outside the cluster.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    address = "192.0.2.1";
    forwarderPort = 4611;
    sshHostKey = key "gamma";
  };
  services.wiki = {
    host = "beta";
    upstream = "192.0.2.2:8080";
  };
  services.blog = {
    host = "alpha";
    listenPort = 81;
    upstream = "192.0.2.1:8080";
  };
  services.printer = {
    host = "alpha";
    port = 631;
    upstream = "192.0.2.77:631";
  };
  services.chat = {
    host = "alpha";
    listenPort = 80;
    upstream = "unix:/run/chat.sock";
  };
  services.local = {
    host = "alpha";
    listenPort = 82;
    upstream = "[::1]:8080";
  };
  roles.reader.services = [
    "wiki"
    "blog"
    "printer"
    "chat"
    "local"
  ];
}
