{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.org";
    tlsAliases = [ "*.wiki.org" ];
  };
}
