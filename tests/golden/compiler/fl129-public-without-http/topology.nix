# An ingress needs to know to which port it connects.
{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    visibility = "public";
    ports.web = 80;
    ports.metrics = 9100;
  };
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
}
