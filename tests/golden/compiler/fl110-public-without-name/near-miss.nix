# A public service with a name.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  providers.tls.hosts = [ "alpha" ];
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.example.org";
  };
}
