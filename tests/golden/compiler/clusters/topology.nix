# Another cluster of the same trust domain: some of its identities reach services here, by name and
# by a group, and some of its services are reached from here, by a role, a group, and a role in a
# role. There is no bundle and no endpoint, because the roots of this trust domain verify both.
{ base, merge, ... }:
merge base {
  clusters.blue = {
    identities = {
      "user/bob".roles = [ "reader" ];
      "service/gate/crawler".roles = [ "chief" ];
      "node/gate".roles = [ ];
    };
    services = {
      tickets = {
        address = [
          "gate.example.org:4610"
          "203.0.113.9:4610"
        ];
        port = 443;
      };
      "gate/ntp" = {
        address = "gate.example.org:4610";
        port = 123;
        protocol = "udp";
      };
      chat = {
        address = "gate.example.org:4610";
        port = 80;
        roles = [ "guest" ];
      };
      unused = {
        address = "gate.example.org:4610";
        port = 80;
      };
    };
  };
  hosts.alpha.roles = [ "chief" ];
  serviceGroups.clocks = [ "gate/ntp@blue" ];
  roles.reader.services = [
    "wiki"
    "tickets@blue"
  ];
  roles.chief.roles = [ "guest" ];
  roles.guest.serviceGroups = [ "clocks" ];
}
