# Hosts on different machines, with addresses that lead every caller to itself.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.beta.address = "127.0.0.2";
  hosts.gamma = {
    address = "::1";
    sshHostKey = key "gamma";
  };
  hosts.delta = {
    address = [
      "192.0.2.4"
      "localhost"
    ];
    sshHostKey = key "delta";
  };
  hosts.kappa = {
    address = "127.0.0.1:4611";
    networks.home = "[::1]:4612";
    sshHostKey = key "kappa";
  };
}
