{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    visibility = "public";
    ports.http = 80;
    ports.metrics = 9100;
  };
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
}
