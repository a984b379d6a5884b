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
    drain = true;
  };
  services.spread = {
    replicas = 2;
    port = 9000;
  };
  roles.reader.services = [
    "spread"
    "wiki"
  ];
}
