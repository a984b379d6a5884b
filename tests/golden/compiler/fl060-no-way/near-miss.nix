# One reachable host of a service with several is enough.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha = {
    address = [ ];
    networks = {
      home = "10.0.0.1";
      lab = "10.9.0.1";
    };
  };
  hosts.beta = {
    address = [ ];
    networks.lab = "10.9.0.2";
  };
  hosts.gamma = {
    networks.home = [ ];
    sshHostKey = key "gamma";
    users = [ "ann" ];
  };
  services.wiki.host = "";
  services.wiki.hosts = [
    "alpha"
    "beta"
  ];
}
