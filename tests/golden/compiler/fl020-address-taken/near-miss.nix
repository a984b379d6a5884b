{ base, key, merge, ... }: merge base {
  hosts.beta = { address = "192.0.2.1"; forwarderPort = 4611; providerPort = 4601; };
  hosts.gamma = { address = "2001:db8::a:0:0:1"; sshHostKey = key "gamma"; };
  hosts.delta = { address = "2001:db8::a:0:1"; sshHostKey = key "delta"; };
  providers.cert.hosts = [ "alpha" "beta" ];
}
