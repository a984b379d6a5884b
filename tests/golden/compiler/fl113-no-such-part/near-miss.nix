# Hosts of the service, a group with one of them, and a tag of one.
{ base, merge, ... }:
merge base {
  hosts.alpha.group = "eu/fra";
  hosts.beta.tags = [ "ssd" ];
  hostGroups."eu/fra" = { };
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  roles.reader.services = [
    "shell@beta"
    "shell@eu"
    "shell@eu/fra"
  ];
  roles.reader.except = [ "shell@ssd" ];
  serviceGroups.shells = [ "shell@alpha" ];
}
