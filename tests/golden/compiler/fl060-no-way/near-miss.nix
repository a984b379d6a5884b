# One reachable host of a service with several is enough, and so is a path through relays.
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
  hosts.gate = {
    address = "192.0.2.3";
    networks = {
      lab = [ ];
      shed = "10.3.0.3";
    };
    relay = true;
    sshHostKey = key "gate";
  };
  hosts.inner = {
    networks = {
      home = "10.0.0.9";
      shed = "10.3.0.1";
    };
    relay = true;
    sshHostKey = key "inner";
  };
  hosts.nas = {
    networks = {
      home = [ ];
      shed = [ ];
    };
    relays = [ "inner" ];
    sshHostKey = key "nas";
  };
  hosts.laptop = {
    networks.lab = [ ];
    sshHostKey = key "laptop";
    users = [ "ann" ];
  };
  services.films = {
    host = "nas";
    port = 8096;
  };
  roles.reader.services = [
    "films"
    "wiki"
  ];
  services.wiki.host = "";
  services.wiki.hosts = [
    "alpha"
    "beta"
  ];
}
