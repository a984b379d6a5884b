{ base, merge, ... }:
merge base {
  services.wiki.visibility = "public";
  services.blog = {
    host = "beta";
    port = 1;
    visibility = "public";
  };
  hosts.alpha.capabilities = [ "ingress" ];
  services.proxy = {
    host = "alpha";
    port = 443;
    roles = [ "reader" ];
  };
}
