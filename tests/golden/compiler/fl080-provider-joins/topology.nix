# A provider host cannot join at a provider that it runs itself.
{ base, merge, ... }:
merge base {
  hosts.gamma.address = "192.0.2.3";
  providers.cert.hosts = [
    "alpha"
    "gamma"
  ];
  providers.config.hosts = [ "alpha" ];
}
