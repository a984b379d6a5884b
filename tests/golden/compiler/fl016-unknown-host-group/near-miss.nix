{ base, merge, ... }:
merge base {
  hostGroups."eu/fra" = { };
  hosts.alpha.group = "eu/fra";
  services.chat = {
    replicas = 1;
    port = 100;
    placement.group = "eu";
  };
  roles.reader.services = [
    "wiki"
    "chat"
  ];
}
