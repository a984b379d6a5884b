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
    keeps = [ "search" ];
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
    "search"
    "spread"
    "wiki"
  ];
}
