# As much as the host can run; placed services go to other hosts.
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
