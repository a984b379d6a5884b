{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    ports = {
      a = {
        port = 80;
        protocol = [
          "http"
          "udp"
        ];
        identity = "http";
      };
      b.port = 81;
      c = {
        port = 82;
        protocol = "udp";
      };
      f = {
        port = 84;
        identity = "proxy-v2";
        protocol = [
          "udp"
          "tcp"
        ];
      };
      g = {
        upstream = "unix:/run/wiki.sock";
        listenPort = 85;
      };
    };
  };
}
