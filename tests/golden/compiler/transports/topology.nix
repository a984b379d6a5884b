# Hosts and services whose forwarders are reached over one transport only. The documents of others
# do not change. One host gives connections longer to end.
{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 8081;
    transport = "quic";
  };
  services.chat = {
    host = "beta";
    port = 8082;
    transport = "auto";
  };
  services.wiki.transport = "tcp";
  hosts.beta.drainTimeout = 3600;
  roles.reader.services = [
    "blog"
    "chat"
    "wiki"
  ];
}
