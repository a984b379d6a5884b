{
  base,
  key,
  merge,
  ...
}:
merge base {
  serial = 0;
  hosts.beta.instance = "abcdefghijkl-n";
  trust.roots = [ ../../../cluster/ca.crt ];
  trust.signingKeys = [ "golden-1:XCy7rhw63wRQyvwr3R1VkY5GBuQyEG/dv/+xh5K2B8c=\n" ];
  hosts.alpha = {
    address = "a1.example.org";
    loopback = "127.0.0.0/8";
  };
  hosts.beta = {
    sshHostKey = key "beta" + " root@beta\n";
    providerPort = 65523;
  };
  hosts.beta.callers = {
    node = [
      "root"
      0
      4294967294
    ];
  };
  hosts.gamma = {
    address = "2001:db8::1";
    sshHostKey = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDedFB2sUyhzYXI6xc/XkCsfCvQTYHuz/YcdvU04q0IZxv2t3SmKQoPjLLYhqK0bb6N0VziSHqGIGJSv/Lh9JVxZx2ynJnhgOMk58HZvcOewvvYk1jZbRi4CZSvpLxavvGIxPcQrhPln4MoG3e5ylxuOBlasuZ1oP9yKmV5moPwQVENs9IbeMcTol4Mk46KmJMb/tyifxWp6wTMMcgZmZbWj+B+G1eIpu1ED4XlM5zGHF1eW7/ijfaxTZURyiS/6zcz1n3YvUsy8yXvsMBeKzq0V6vtRFirD72I7ejKsQS7Nx1dyNueL+WVMFipw3ByNr8Az2jLvWe7/B6q8zS1Xg1F";
  };
  hosts.epsilon = {
    address = "223.255.255.254";
    sshHostKey = key "epsilon";
  };
  hosts.zeta = {
    address = "rete.example";
    sshHostKey = key "zeta";
  };
  hosts.delta = {
    address = "1:2:3:4:5:6:7:8";
    sshHostKey = key "delta";
  };
  services.wiki = {
    port = 1;
    upstream = "[2001:db8::2]:8080";
    user = "wiki-js";
  };
  services.wiki = {
    visibility = "public";
    tlsName = "rete.xn--p1ai";
  };
  hosts.beta.capabilities = [ "ingress" ];
}
