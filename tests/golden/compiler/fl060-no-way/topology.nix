# Callers that share no network with a host that has no address for all callers.
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
  ];
  hosts.gamma = {
    networks.home = [ ];
    sshHostKey = key "gamma";
    users = [ "ann" ];
  };
}
