# Paths through one relay and through two. Their targets are a hidden host, hosts without an address,
# hosts of a group, and a host with an address. One caller is a relay itself.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  pathSalt = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
  hosts = {
    # Beside its own address.
    beta.relays = [ "gate" ];
    gate = {
      address = "192.0.2.3";
      networks.rack = "10.1.0.3";
      relay = true;
      relayLimits.bytesPerSecond = 12500000;
      roles = [ "reader" ];
      sshHostKey = key "gate";
    };
    # Called in the rack alone.
    inner = {
      networks.rack = "10.1.0.4";
      relay = true;
      sshHostKey = key "inner";
    };
    outer = {
      address = "outer.example.org:14610";
      relay = true;
      sshHostKey = key "outer";
      transport = "tcp";
    };
    vault = {
      address = "192.0.2.9";
      hidden = true;
      networks.rack = "10.1.0.9";
      relays = [ "inner" ];
      sshHostKey = key "vault";
    };
    nas = {
      group = "home/attic";
      sshHostKey = key "nas";
      users = [ "ann" ];
    };
    tv = {
      group = "home";
      relays = [
        "outer"
        "gate"
        "spare"
      ];
      sshHostKey = key "tv";
    };
    # Publishes nothing, so it keeps no connection.
    idle = {
      group = "home";
      sshHostKey = key "idle";
    };
    spare = {
      address = "192.0.2.5";
      relay = true;
      sshHostKey = key "spare";
    };
  };
  hostGroups.home.relays = [ "gate" ];
  hostGroups."home/attic".relays = [ "outer" ];
  services.wiki = {
    host = "";
    hosts = [
      "beta"
      "vault"
    ];
  };
  services.safe = {
    host = "vault";
    port = 9000;
  };
  services.films = {
    hosts = [
      "nas"
      "tv"
    ];
    ports = {
      http = 8096;
      found = {
        port = 1900;
        protocol = "udp";
      };
    };
  };
  services.shell = {
    hosts = [
      "nas"
      "vault"
    ];
    port = 22;
    scope = "node";
  };
  roles.reader.services = [
    "films"
    "safe"
    "shell"
    "wiki"
  ];
}
