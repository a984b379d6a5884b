# A service's limits are in the manifests of its hosts, and a user's limits in those of the services
# that the user reaches. The documents of others do not change.
{ base, merge, ... }:
merge base {
  services.wiki.limits = {
    connections = 2000;
    bytesPerSecond = 50000000;
  };
  services.chat = {
    host = "alpha";
    port = 8082;
  };
  roles.talker.services = [ "chat" ];
  users.ann.limits = {
    connections = 100;
    opensPerSecond = 20;
    bytesPerSecond = 10000000;
  };
  users.bob = {
    roles = [ "talker" ];
    limits.opensPerSecond = 5;
  };
  users.eve = {
    roles = [ "talker" ];
    limits.opensPerSecond = 1; # on no host: she has no SVID
  };
  hosts.beta.users = [
    "ann"
    "bob"
  ];
}
