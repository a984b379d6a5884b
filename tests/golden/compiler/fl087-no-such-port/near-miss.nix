{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    ports = {
      http = 80;
      metrics = 9100;
      dns = {
        port = 53;
        protocol = [
          "tcp"
          "udp"
        ];
      };
    };
  };
  services.shell = {
    host = "alpha";
    scope = "node";
    ports.ssh = 22;
  };
  roles.reader.services = [
    "wiki:metrics"
    "shell@alpha:ssh"
    "wiki"
  ];
  roles.reader.except = [ "wiki:dns" ];
}
