# Strangers reach a port of a service, then another network, and another service by its server name.
{ base, merge, ... }:
let
  gate = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    services.wiki = {
      visibility = "public";
      publicPorts.smtp.port = 25;
      publicPorts.smtp.from = [ "192.0.2.0/24" ];
      publicPorts.smtp.limits.connections = 10;
    };
    services.blog = {
      host = "beta";
      port = 81;
      visibility = "public";
      publicPorts.tls.port = 465;
    };
    roles.reader.services = [
      "wiki"
      "blog"
    ];
  };
in
{
  before = gate;
  after = merge gate {
    services.wiki.publicPorts.smtp.from = [
      "192.0.2.0/24"
      "198.51.100.0/24"
    ];
    services.wiki.publicPorts.smtp.limits.connections = 20;
    services.wiki.identity = "proxy-v2";
    services.wiki.accessLog = "full";
    services.blog.publicPorts.tls.serverNames = [ "blog.example.org" ];
    services.shop = {
      host = "beta";
      port = 53;
      protocol = "udp";
      visibility = "public";
      publicPorts.names = 53;
    };
    roles.reader.services = gate.roles.reader.services ++ [ "shop" ];
  };
}
