# The same services, written correctly.
{ base, merge, ... }:
merge base {
  hosts.alpha.group = "eu";
  hostGroups.eu = { };
  services.wiki = {
    port = null;
    ports = {
      http = 80;
      metrics = 9100;
    };
  };
  services.shell = {
    replicas = "all";
    port = 22;
    scope = "node";
    placement.apart = [ "wiki" ];
  };
  clusters.blue.services.tickets = {
    address = "gate.example.org:4610";
    port = 443;
  };
  roles.reader.services = [
    "tickets@blue"
    "wiki:metrics"
    "shell@eu"
    "wiki"
  ];
}
