# The cluster's own CA issues what it likes, and without a provider a name is any proxy's affair.
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
