{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.networks.home = "10.0.0.1";
  hosts.beta.networks.home = "10.0.0.2";
  hosts.gamma = {
    networks.home = [ ];
    sshHostKey = key "gamma";
  };
}
