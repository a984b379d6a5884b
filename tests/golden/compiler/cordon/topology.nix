# A host with a cordon or a drain keeps the services that it names, and services with an instance
# for each host.
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
    keeps = [
      "kept"
      "search"
    ];
  };
  hosts.delta = {
    address = "192.0.2.4";
    sshHostKey = key "delta";
    drain = true;
    keeps = [ "kept" ];
  };
  services.all = {
    replicas = "all";
    port = 9000;
  };
  services.kept = {
    replicas = 4;
    port = 9002;
    placement.pins = [ "delta" ];
  };
  services.shell = {
    replicas = "all";
    port = 22;
    scope = "node";
  };
  services.search = {
    replicas = 3;
    port = 9001;
  };
  roles.reader.services = [
    "all"
    "kept"
    "search"
    "shell"
    "wiki"
  ];
}
