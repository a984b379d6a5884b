{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.networks.hone = "10.0.0.1";
  hosts.beta.networks.home = "10.0.0.2";
  hosts.gamma = {
    networks = {
      home = [ ];
      "eu-lab" = [ ];
    };
    sshHostKey = key "gamma";
  };
}
