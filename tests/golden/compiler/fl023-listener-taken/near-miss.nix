{ base, merge, ... }:
merge base {
  hosts.beta = {
    loopback = "127.5.0.0/30";
    callers."user/ann" = [ ];
  };
  services.blog = {
    host = "alpha";
    port = 1;
    listenPort = 81;
  };
  services.zine = {
    host = "alpha";
    port = 2;
    listenPort = 82;
  };
  services.wiki.listenPort = 80;
  # On alpha the provider uses TCP 4600 of an address, and the forwarder UDP 4610 of it.
  hosts.alpha = {
    bind = "192.0.2.1";
    users = [ "ann" ];
  };
  services.api = {
    host = "beta";
    port = 4601;
    listenPort = 4600;
  };
  services.voice = {
    host = "alpha";
    port = 4609;
    listenPort = 4610;
    protocol = "udp";
  };
  roles.reader.services = [
    "api"
    "blog"
    "wiki"
    "zine"
  ];
  roles.node.services = [ "voice" ];
  hosts.beta.bind = "192.0.2.2";
}
