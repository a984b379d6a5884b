{ base, merge, key }:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
  };
  providers.cert.hosts = [
    "alpha"
    "gamma"
  ];
  providers.config.hosts = [ "alpha" ];
}
