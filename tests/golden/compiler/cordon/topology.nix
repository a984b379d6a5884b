# A host with a cordon keeps what it names, a host with drain nothing that is placed.
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
  hosts.delta = {
    address = "192.0.2.4";
    sshHostKey = key "delta";
    drain = true;
    keeps = [ "search" ];
  };
  services.all = {
    replicas = "all";
    port = 9000;
  };
  services.search = {
    replicas = 3;
    port = 9001;
  };
  roles.reader.services = [
    "all"
    "search"
    "wiki"
  ];
}
