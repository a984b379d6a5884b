# As much as it takes, and what is placed goes elsewhere.
{ base, merge, ... }:
merge base {
  hosts.beta.capacity = 3;
  services.wiki.placement.size = 2;
  services.chat = {
    host = "beta";
    port = 1;
  };
  services.placed = {
    replicas = 1;
    port = 2;
  };
  roles.reader.services = [
    "chat"
    "placed"
    "wiki"
  ];
}
