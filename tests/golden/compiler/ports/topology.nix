# One name and one address with several ports: access to all of them, to one, and to all but one; to
# a port of an instance on one host; and an ingress that connects to http.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.beta.users = [
    "ann"
    "bob"
    "cat"
  ];
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    transport = "tcp";
  };
  services = {
    wiki = {
      port = null;
      user = "wiki";
      visibility = "public";
      tlsName = "wiki.example.org";
      limits.connections = 10;
      ports = {
        http = {
          port = 8080;
          listenPort = 80;
          protocol = "http";
          identity = "http";
        };
        metrics = 9100;
        dns = {
          upstream = "192.0.2.53:53";
          listenPort = 53;
          protocol = [
            "tcp"
            "udp"
          ];
        };
        admin = {
          upstream = "unix:/run/wiki/admin.sock";
          listenPort = 8081;
        };
      };
    };
    # Its ID sorts between the ports of wiki.
    wiki-2 = {
      host = "beta";
      port = 9200;
    };
    shell = {
      hosts = [
        "beta"
        "gamma"
      ];
      scope = "both";
      ports = {
        ssh = 22;
        metrics.port = 9101;
      };
    };
    scraper = {
      host = "alpha";
      port = 9090;
      user = "prometheus";
      roles = [ "scraper" ];
    };
    proxy = {
      host = "alpha";
      port = 443;
      user = "caddy";
      roles = [ "entrance" ];
    };
  };
  users = {
    bob.roles = [ "most" ];
    cat.roles = [ "one" ];
    cat.until.most = "2027-01-31";
  };
  roles = {
    reader.services = [
      "wiki"
      "wiki-2"
      "scraper"
      "proxy"
    ];
    scraper.services = [
      "wiki:metrics"
      "shell:metrics"
    ];
    entrance.services = [ "wiki:http" ];
    most = {
      services = [
        "wiki"
        "shell"
      ];
      except = [
        "wiki:admin"
        "shell@gamma:ssh"
      ];
    };
    one.services = [
      "shell@gamma:metrics"
      "wiki:dns"
    ];
  };
}
