# The name of a port is free if the service has one port.
{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
  services.wiki = {
    visibility = "public";
    publicPorts.smpt = 25;
  };
}
