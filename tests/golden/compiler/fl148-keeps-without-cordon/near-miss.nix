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
    replicas = 1;
    port = 9001;
  };
  roles.reader.services = [
    "search"
    "wiki"
  ];
}
