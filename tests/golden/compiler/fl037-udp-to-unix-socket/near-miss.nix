{ base, merge, ... }:
merge base {
  services.dns = {
    host = "beta";
    listenPort = 53;
    upstream = "[::1]:5353";
    protocol = "udp";
  };
  services.chat = {
    host = "beta";
    listenPort = 80;
    upstream = "unix:/run/chat.sock";
    protocol = "http";
  };
  roles.reader.services = [
    "chat"
    "dns"
    "wiki"
  ];
}
