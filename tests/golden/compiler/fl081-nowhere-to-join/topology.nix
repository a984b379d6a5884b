# A host that joins does so at a provider of its documents.
{ base, merge, ... }:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    deploy = "closure";
  };
  providers.config.hosts = [ "alpha" ];
}
