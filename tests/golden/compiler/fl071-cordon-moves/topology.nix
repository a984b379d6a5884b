{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    cordon = true;
  };
  services.first = {
    replicas = 1;
    port = 9000;
    placement.tags = [ ];
  };
  services.search = {
    replicas = 2;
    port = 9001;
  };
  services.spread = {
    replicas = 2;
    port = 9002;
  };
  roles.reader.services = [
    "first"
    "search"
    "spread"
    "wiki"
  ];
}
