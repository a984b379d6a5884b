{ base, merge, ... }:
merge base {
  hosts.beta.capacity = 2;
  services.wiki.placement.size = 2;
  services.chat = {
    host = "beta";
    port = 1;
  };
  roles.reader.services = [
    "chat"
    "wiki"
  ];
}
