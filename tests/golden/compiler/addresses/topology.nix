# IPv6, DNS names, several hosts behind one address, and ports that differ behind a NAT.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha = {
    address = "2001:db8::1";
    providerPort = 4601;
  };
  hosts.beta = {
    address = "beta.example.org";
    loopback = "127.1.0.0/24";
  };
  hosts.gamma = {
    address = "beta.example.org";
    forwarderPort = 4611;
    sshHostKey = key "gamma";
  };
  hosts.roaming = {
    sshHostKey = key "roaming" + " root@roaming\n";
    users = [ "ann" ];
  };
  services.wiki = {
    listenPort = 80;
    upstream = "[::1]:3000";
  };
  services.copy = {
    hosts = [
      "beta"
      "gamma"
    ];
    port = 8080;
    upstream = "localhost:3000";
  };
  roles.reader.services = [
    "copy"
    "wiki"
  ];
}
