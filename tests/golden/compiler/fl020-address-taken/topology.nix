# Different spellings of an IPv6 address. An address for all callers is taken in every network too.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.beta.address = "192.0.2.1";
  hosts.beta.forwarderPort = 4611;
  hosts.alpha.forwarderPort = 4611;
  hosts.gamma = {
    address = "2001:db8::a:0:0:1";
    sshHostKey = key "gamma";
  };
  hosts.delta = {
    address = "2001:DB8:0:0:00a::01";
    sshHostKey = key "delta";
  };
  hosts.kappa = {
    address = "198.51.100.7:4611";
    networks.home = [
      "10.0.0.1"
      "10.0.0.2"
      "10.0.0.1"
    ];
    sshHostKey = key "kappa";
  };
  hosts.lambda = {
    address = "198.51.100.7";
    forwarderPort = 4611;
    networks.home = "10.0.0.2:4610";
    sshHostKey = key "lambda";
  };
  hosts.mu = {
    address = "10.0.0.2";
    sshHostKey = key "mu";
  };
  providers.cert.hosts = [
    "alpha"
    "beta"
  ];
}
