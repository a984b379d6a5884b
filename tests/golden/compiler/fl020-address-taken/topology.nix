{ base, merge, ... }: merge base {
  hosts.beta.address = "192.0.2.1";
  hosts.beta.forwarderPort = 4611;
  hosts.alpha.forwarderPort = 4611;
  providers.cert.hosts = [ "alpha" "beta" ];
}
