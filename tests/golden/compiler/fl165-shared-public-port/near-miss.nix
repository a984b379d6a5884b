# Different names, and one service for connections without a name of another.
{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.alpha.roles = [ "reader" ];
  services.blog = {
    host = "beta";
    port = 8081;
    visibility = "public";
    publicPorts.tls.port = 465;
    publicPorts.tls.serverNames = [ "blog.example.org" ];
  };
  services.chat = {
    host = "beta";
    port = 8082;
    visibility = "public";
    publicPorts.tls = 465;
  };
  services.wiki = {
    visibility = "public";
    publicPorts.tls.port = 465;
    publicPorts.tls.serverNames = [ "wiki.example.org" ];
  };
  roles.reader.services = [
    "blog"
    "chat"
    "wiki"
  ];
}
