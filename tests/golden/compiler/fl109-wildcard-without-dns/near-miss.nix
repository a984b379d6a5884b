# The cluster's own CA issues wildcard certificates; without a provider, the proxy has its own
# certificates.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.internal";
    tlsAliases = [
      "*.wiki.internal"
      "docs.example.org"
    ];
  };
  providers.tls = {
    hosts = [ "alpha" ];
    wildcards = [ "apps.internal" ];
  };
}
