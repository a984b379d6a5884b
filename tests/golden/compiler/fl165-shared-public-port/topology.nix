# Nothing tells the callers of two services apart: by port alone, by the same TLS server name, and
# at the port of the reverse proxy.
{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
  services.blog = {
    host = "beta";
    port = 8081;
    visibility = "public";
    publicPorts.smtp = 25;
    publicPorts.tls.port = 465;
    publicPorts.tls.serverNames = [
      "blog.example.org"
      "mail.example.org"
    ];
  };
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.example.org";
    publicPorts.plain = 443;
    publicPorts.smtp = 25;
    publicPorts.tls.port = 465;
    publicPorts.tls.serverNames = [
      "mail.example.org"
      "wiki.example.org"
    ];
  };
  roles.reader.services = [
    "blog"
    "wiki"
  ];
}
