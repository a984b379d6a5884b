# Where there are hosts, a group that one is in, and a tag that one has.
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
