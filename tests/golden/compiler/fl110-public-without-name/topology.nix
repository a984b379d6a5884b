# An ingress finds a service by its public name, and this service has none.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  providers.tls.hosts = [ "alpha" ];
  services.wiki.visibility = "public";
}
