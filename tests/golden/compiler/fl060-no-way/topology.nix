# Callers that share no network with a host that has no address for all callers, and no relay.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha = {
    address = [ ];
    networks.home = "10.0.0.1";
  };
  hosts.beta = {
    address = [ ];
    networks.lab = "10.9.0.2";
  };
  services.names = {
    host = "beta";
    ports.query = {
      port = 53;
      protocol = [
        "tcp"
        "udp"
      ];
    };
  };
  roles.reader.services = [
    "wiki"
    "names"
    "films"
  ];
  services.films = {
    host = "nas";
    port = 8096;
  };
  services.news = {
    host = "tv";
    port = 80;
  };
  hosts.gate = {
    address = "192.0.2.3";
    networks.lab = "10.9.0.3";
    relay = true;
    sshHostKey = key "gate";
  };
  # Its relay is called in a network alone.
  hosts.nas = {
    networks.shed = [ ];
    relays = [ "inner" ];
    sshHostKey = key "nas";
  };
  hosts.inner = {
    networks.shed = "10.3.0.1";
    relay = true;
    sshHostKey = key "inner";
  };
  # It does not call its relay itself.
  hosts.tv = {
    relays = [ "inner" ];
    sshHostKey = key "tv";
  };
  hosts.gamma = {
    networks.home = [ ];
    sshHostKey = key "gamma";
    users = [ "ann" ];
  };
}
