# A host joins at a provider of documents, and there is none.
{ base, merge, ... }:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    deploy = "closure";
  };
  providers.config.hosts = [ "alpha" ];
}
