# Other faults of ports are reported for each of them.
{ base, merge, ... }:
merge base {
  services.wiki = {
    protocol = "udp";
    ports = {
      a = {
        port = 80;
        protocol = [
          "tcp"
          "http"
        ];
      };
      b = {
        port = 81;
        protocol = [ ];
      };
      c = {
        port = 82;
        protocol = [
          "udp"
          "udp"
        ];
      };
      d.protocol = "sctp";
      twice = {
        port = 97;
        protocol = [
          "tcp"
          "tpc"
        ];
      };
      e.listenPort = 83;
      f = {
        port = 84;
        identity = "http";
      };
      g = {
        upstream = "unix:/run/wiki.sock";
        listenPort = 85;
        protocol = [
          "tcp"
          "udp"
        ];
      };
      h = "86";
      i = {
        prot = 87;
        port = 87;
      };
      j = {
        port = 88;
        protocol = "udp";
        identity = "proxy-v2";
      };
      K = 89;
    };
  };
  services.other = {
    host = "beta";
    port = 80;
  };
}
