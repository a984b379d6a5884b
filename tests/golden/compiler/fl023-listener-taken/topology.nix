# Two addresses for three services, and a program that takes its port on all addresses.
{ base, merge, ... }:
merge base {
  hosts.beta = {
    loopback = "127.5.0.0/30";
    callers."user/ann" = [ ];
  };
  services.blog = {
    host = "alpha";
    port = 1;
    listenPort = 80;
  };
  services.zine = {
    host = "alpha";
    port = 2;
    listenPort = 80;
  };
  services.wiki.listenPort = 80;
  hosts.alpha.users = [ "ann" ];
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
    "voice"
    "wiki"
    "zine"
  ];
}
