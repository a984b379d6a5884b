{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
  services.wiki = {
    visibility = "public";
    publicPorts.smtp = 25;
    publicPorts.imap.port = 143;
    publicPorts.imap.hosts = [ "alpha" ];
  };
}
