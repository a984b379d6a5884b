# No host has the addresses that are called: ursula is at home behind raishan, which forwards one
# port to her, and every port of an address to the provider; mgmt01 has a DNS name.
base: facts: {
  hosts = base.hosts // {
    drhorrible = base.hosts.drhorrible // {
      address = [
        "203.0.113.9"
        "203.0.113.1"
      ];
    };
    raishan = base.hosts.raishan // {
      networks.home = [ ];
    };
    ursula = base.hosts.ursula // {
      address = "${facts.addresses.raishan}:14610";
      networks.home = "10.88.0.3";
    };
    mgmt01 = base.hosts.mgmt01 // {
      address = "mgmt01.example.org";
    };
    laptop = base.hosts.laptop // {
      networks.home = [ ];
    };
  };
}
