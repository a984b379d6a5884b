{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.drain = true;
  hosts.beta.drain = true;
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
  };
  services.spread = {
    replicas = 1;
    port = 9000;
  };
  roles.reader.services = [
    "spread"
    "wiki"
  ];
}
