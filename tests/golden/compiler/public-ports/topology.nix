# Strangers reach ports of services through hosts with an ingress: by port, or by TLS server name.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "gate" ];
  };
  # A second ingress, with two addresses of its own, from which the node does not reach the queue.
  hosts.gamma = {
    address = "192.0.2.3";
    bind = [
      "192.0.2.3"
      "2001:db8::3"
    ];
    capabilities = [ "ingress" ];
    roles = [ "mails" ];
    sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";
  };
  services.mail = {
    host = "beta";
    visibility = "public";
    accessLog = "full";
    ports.smtp = {
      port = 2525;
      listenPort = 25;
      identity = "proxy-v2";
    };
    ports.names = {
      port = 5300;
      listenPort = 53;
      protocol = [
        "tcp"
        "udp"
      ];
    };
    publicPorts.smtp = {
      port = 25;
      limits.connections = 20;
    };
    publicPorts.names = 53;
  };
  services.queue = {
    host = "beta";
    port = 5672;
    visibility = "public";
    publicPorts.amqps = {
      port = 5671;
      serverNames = [
        "queue.example.org"
        "mq.example.org"
      ];
    };
  };
  services.telemetry = {
    host = "beta";
    port = 8883;
    visibility = "public";
    publicPorts.mqtts = {
      port = 5671;
      hosts = [ "alpha" ];
      from = [
        "203.0.113.7"
        "192.0.2.0/24"
        "2001:db8:1::/48"
      ];
    };
  };
  roles.gate.services = [
    "mail"
    "queue"
    "telemetry"
  ];
  roles.mails.services = [ "mail" ];
}
