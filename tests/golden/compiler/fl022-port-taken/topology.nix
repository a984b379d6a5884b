# A program on all addresses also takes its port of 127.0.0.1. The store has two ports.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  services.blog = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 8080;
  };
  services.zine = {
    host = "beta";
    port = 8080;
  };
  services.dns = {
    host = "beta";
    port = 53;
    protocol = "udp";
  };
  services.names = {
    host = "beta";
    port = 53;
    protocol = "udp";
  };
  services.api = {
    host = "alpha";
    port = 4600;
  };
  hosts.alpha.bind = "0.0.0.0";
  services.voice = {
    host = "beta";
    port = 4610;
    protocol = "udp";
  };
  providers = {
    cert.hosts = [
      "alpha"
      "beta"
      "gamma"
    ];
    store = {
      kind = "etcd";
      hosts = [
        "beta"
        "gamma"
      ];
      port = 4609;
    };
  };
  services.database = {
    host = "beta";
    port = 4609;
  };
  # On another address, only programs of Florete conflict with each other.
  hosts.gamma = {
    address = "192.0.2.3";
    bind = "192.0.2.3";
    sshHostKey = key "gamma";
    providerPort = 4610;
  };
}
