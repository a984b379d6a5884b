{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  services.wiki = {
    port = null;
    ports = {
      http = 8080;
      ws = 8081;
      sound = {
        port = 8082;
        protocol = "udp";
      };
    };
    visibility = "public";
    tlsName = "wiki.example.org";
    ingress.paths = {
      "/sound".port = "sound";
      "/video".port = "video";
      "/ws".port = "ws";
    };
  };
  roles.reader.services = [ "wiki:http" ];
}
