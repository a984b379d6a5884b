# An IPv6 address has many spellings.
{ base, key, merge, ... }: merge base {
  hosts.beta.address = "192.0.2.1";
  hosts.beta.forwarderPort = 4611;
  hosts.alpha.forwarderPort = 4611;
  hosts.gamma = { address = "2001:db8::a:0:0:1"; sshHostKey = key "gamma"; };
  hosts.delta = { address = "2001:DB8:0:0:00a::01"; sshHostKey = key "delta"; };
  providers.cert.hosts = [ "alpha" "beta" ];
}
