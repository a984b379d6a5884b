# A host without a key in the flake joins.
{ base, merge, ... }:
merge base {
  hosts.gamma.address = "192.0.2.3";
  services.wiki.host = "gamma";
  providers.config.hosts = [ "alpha" ];
}
