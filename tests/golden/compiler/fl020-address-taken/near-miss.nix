{ base, merge, ... }: merge base {
  hosts.beta = { address = "192.0.2.1"; forwarderPort = 4611; providerPort = 4601; };
  providers.cert.hosts = [ "alpha" "beta" ];
}
