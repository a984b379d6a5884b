{ base, merge, ... }:
merge base {
  hosts.beta.keeps = [ "search" ];
  services.search = {
    replicas = 1;
    port = 9001;
  };
  roles.reader.services = [
    "search"
    "wiki"
  ];
}
