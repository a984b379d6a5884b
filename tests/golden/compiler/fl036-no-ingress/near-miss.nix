{ base, merge, ... }:
merge base {
  services.wiki.visibility = "public";
  hosts.alpha.capabilities = [ "ingress" ];
  services.proxy = {
    host = "alpha";
    port = 443;
    visibility = "host";
    roles = [ "reader" ];
  };
}
