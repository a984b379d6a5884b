# HTTP-01 shows one name: no CA issues for all below a domain by it.
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
