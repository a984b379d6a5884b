# One wrong value for each type. None of them also counts as missing.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  serial = -1;
  rev = 7;
  self = "here";
  trust = {
    roots = [
      ./missing.crt
      ./topology.nix
      "ca.crt"
      ./conflict.crt
    ];
    signingKeys = [
      "golden-1:short"
      "golden-1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    ];
  };
  hosts.alpha = {
    address = "10.0.0.300";
    kind = "servr";
    loopback = "127.64.0.1/10";
  };
  hosts.beta = {
    sshHostKey = "ssh-ed25519 AAAA";
    providerPort = "4600";
    users = "ann";
    tags = [ 1 ];
  };
  hosts.beta.callers = {
    node = "root";
    "user/ann" = [
      "an n"
      "wiki.socket"
      (-1)
    ];
  };
  hosts.gamma = {
    address = "::1::";
    sshHostKey = key "gamma";
    loopback = "10.0.0.0/8";
  };
  hosts.delta = "192.0.2.4";
  services.wiki = {
    port = 70000;
    upstream = "8080";
    user = "wiki js";
    roles = { };
    limits = {
      connections = "many";
      opensPerSecond = 0;
      bytesPerSecond = 999;
    };
    sso = {
      mode = "oidc";
      restart = "wiki";
      redirectURIs = [
        "wiki.example.org"
        "https://wiki.example.org:65536"
        "https://[::1"
        "https://wiki.example.org/%zz"
      ];
    };
  };
  hosts.zeta = {
    address = "1:::2";
    sshHostKey = key "zeta";
  };
  hosts.omicron = {
    address = [
      "192.0.2.9"
      "192.0.2.9:70000"
      "::1:x"
      "fe80::1"
      7
    ];
    networks = {
      Home = "10.0.0.1";
      lan = { };
    };
    bind = [
      "omicron"
      "10.0.0.1:4610"
      "ff02::1"
    ];
    sshHostKey = key "omicron";
  };
  hosts.eta = {
    address = ":1::2";
    sshHostKey = key "eta";
  };
  hosts.theta = {
    address = "1:2:3";
    sshHostKey = key "theta";
  };
  hosts.iota = {
    address = "0.0.0.0";
    sshHostKey = key "iota";
    instance = "Blue";
  };
  hosts.kappa = {
    address = "224.0.0.1";
    sshHostKey = key "kappa";
    instance = "abcdefghijklmno";
  };
  hosts.lambda = {
    address = "0::";
    sshHostKey = key "lambda";
    instance = "red_blue";
  };
  hosts.mu = {
    address = "ff02::1";
    sshHostKey = key "mu";
    instance = "blue-";
  };
  hosts.nu = {
    address = "nu.golden.flor.rete";
    sshHostKey = key "nu";
  };
  hosts.xi = {
    address = "255.255.255.255";
    sshHostKey = key "xi";
  };
  hosts.rho.sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcXanA9TdhPujwLdg0QZw8qIFP6LDnMxk7H/XeSrAN6";
  hosts.sigma.sshHostKey = "ecdsa-sha2-nistp256 ${builtins.substring 12 53 (key "sigma")}";
  hosts.pi.sshHostKey = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC+DxDI9P37bsh/pNmqksk2c9dJO07qrIvEoupcns78fJ6FKqU/Kxu+qALdCVa599nEBXH+3GBVB0sPw2BjIFtLaJbcVBE1yGb/J7S3dEHMklh2zFfaNuehVFyWy9CUDCshnZDCGVwXNyU4my6tqze6oTFQ02MNT4TadMD+um7mXQ==";
  services.ten = {
    host = "beta";
    listenPort = 10;
    upstream = "wiki.golden.flor.rete:80";
  };
  services.twelve = {
    host = "beta";
    listenPort = 12;
    upstream = "unix:/run/sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss";
  };
  services.eleven = {
    replicas = "every";
    until = "2027-01-31";
    port = 11;
  };
  services.wiki.tlsName = "wiki";
  services.four = {
    host = "beta";
    port = 4;
    tlsName = "wiki.golden.flor.rete";
  };
  services.five = {
    host = "beta";
    port = 5;
    placement = "near";
    tlsName = "Wiki.example.org";
  };
  services.six = { lib }: {
    host = "beta";
    port = 6;
  };
  services.seven = {
    host = "beta";
    listenPort = 7;
    upstream = "http://192.0.2.77";
  };
  services.eight = {
    host = "beta";
    upstream = "192.0.2.77:65536";
  };
  services.nine = {
    host = [ "beta" ];
    port = 9;
  };
  services.third = {
    host = "beta";
    port = "80";
  };
  services.other = {
    hosts = "beta";
    port = 0;
    sso = null;
  };
  providers.database = {
    hosts = [ "alpha" ];
    servers = {
      a.address = "127.0.0.1:99999";
      b.address = "127.0.0.999:5432";
      c.address = "127.0.0.1:0";
      d.address = "192.0.2.1:5432";
    };
  };
  providers.git = {
    hosts = [ "alpha" ];
    forges.a.address = "127.0.0.1:023231";
  };
  users = [ "ann" ];
  roles.reader = [ "wiki" ];
  serviceGroups.all = "wiki";
  providers.cert = {
    hosts = x: x;
    lifetime = 1.5;
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org/realm";
  };
}
