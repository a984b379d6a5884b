# A public port leads to a port of the service, by its name.
{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
  services.wiki = {
    port = null;
    visibility = "public";
    ports.smtp = 25;
    ports.imap = 143;
    publicPorts.smpt = 25;
  };
}
