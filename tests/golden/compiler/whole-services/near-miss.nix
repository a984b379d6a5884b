{ base, merge, ... }:
merge base {
  services.chat = {
    replicas = 1;
    port = 100;
    placement.apart = [ "wiki" ];
  };
  roles.reader.services = [
    "wiki"
    "chat"
  ];
}
