# HTTP-01 proves one name, so no CA issues a wildcard certificate for it.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.example.net";
    tlsAliases = [
      "*.wiki.example.net"
      "*.wiki.internal"
    ];
  };
  providers.tls = {
    hosts = [ "alpha" ];
    wildcards = [ "example.org" ];
  };
}
