# Two networks with the same addresses, a host with the same address in its network and elsewhere,
# and a NAT with a port for each host.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.beta = {
    address = "192.0.2.1";
    forwarderPort = 4611;
    providerPort = 4601;
  };
  hosts.gamma = {
    address = "2001:db8::a:0:0:1";
    sshHostKey = key "gamma";
  };
  hosts.delta = {
    address = "2001:db8::a:0:1";
    sshHostKey = key "delta";
  };
  hosts.kappa = {
    address = "198.51.100.7:4611";
    networks.home = "10.0.0.1";
    sshHostKey = key "kappa";
  };
  hosts.lambda = {
    address = "198.51.100.7:4612";
    networks.lab = "10.0.0.1";
    sshHostKey = key "lambda";
  };
  hosts.mu = {
    address = "198.51.100.8";
    networks.lab = "198.51.100.8";
    sshHostKey = key "mu";
  };
  providers.cert.hosts = [
    "alpha"
    "beta"
  ];
}
