{ base, merge, ... }:
merge base {
  services.blog = {
    host = "alpha";
    port = 8080;
  };
  # TCP and UDP have separate ports.
  services.dns = {
    host = "beta";
    port = 8080;
    protocol = "udp";
  };
  # A program on another address leaves 127.0.0.1 free.
  hosts.alpha.bind = "192.0.2.1";
  services.api = {
    host = "alpha";
    port = 4600;
  };
  services.voice = {
    host = "beta";
    port = 4611;
    protocol = "udp";
  };
  hosts.beta.transport = "quic";
  services.apis = {
    host = "beta";
    port = 4610;
  };
  # One program with two names.
  services.zine = {
    host = "beta";
    port = 8080;
    upstream = "127.0.0.1:8080";
  };
  # A host without a member of the store.
  providers.store = {
    kind = "etcd";
    hosts = [ "alpha" ];
    port = 8079;
  };
}
