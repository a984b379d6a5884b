# alpha provides at home behind a NAT that forwards its ports, one of them with another number.
# beta, in a cloud, has one name for two families and listens on an address that is not called.
# gamma is only called at home. roaming is sometimes at home, and is never called.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha = {
    address = "198.51.100.7:14610";
    networks = {
      home = [
        "10.0.0.1"
        "alpha.lan"
      ];
      lab = [
        "10.9.0.1"
        "alpha.lan"
      ];
    };
    users = [ "ann" ];
  };
  hosts.beta = {
    address = [
      "192.0.2.2"
      "2001:db8::2"
    ];
    bind = [
      "172.31.0.2"
      "::1"
    ];
  };
  hosts.gamma = {
    networks.home = "10.0.0.3";
    networks.lab = "10.9.0.3";
    sshHostKey = key "gamma";
  };
  hosts.roaming = {
    networks.home = [ ];
    networks.lab = [ ];
    sshHostKey = key "roaming";
    users = [ "ann" ];
  };
  hosts.site = {
    networks.lab = "10.0.0.3";
    address = "198.51.100.7";
    forwarderPort = 4611;
    sshHostKey = key "site";
  };
  services.copy = {
    hosts = [
      "alpha"
      "beta"
      "gamma"
    ];
    port = 8082;
  };
  services.films = {
    host = "site";
    port = 8081;
  };
  roles.reader.services = [
    "copy"
    "wiki"
    "films"
  ];
}
