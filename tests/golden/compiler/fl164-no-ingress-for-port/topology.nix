# The node of the ingress must reach the service; a role of a proxy's account is not enough.
{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  services.wiki = {
    visibility = "public";
    publicPorts.smtp = 25;
    publicPorts.imap.port = 143;
    publicPorts.imap.hosts = [
      "alpha"
      "beta"
    ];
  };
  services.proxy = {
    host = "alpha";
    port = 3128;
    user = "proxy";
    roles = [ "reader" ];
  };
  roles.reader.services = [ "proxy" ];
}
