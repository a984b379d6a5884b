{ base, merge, ... }:
merge base {
  hosts.gamma.address = "192.0.2.3";
  providers.config.hosts = [ "alpha" ];
}
