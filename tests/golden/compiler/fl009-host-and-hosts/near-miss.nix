{ base, merge, ... }:
merge base {
  services = {
    wiki = {
      host = "";
      hosts = [
        "alpha"
        "beta"
      ];
      protocol = "http";
      identity = "http";
    };
    dns = {
      host = "beta";
      port = 53;
      protocol = "udp";
      identity = "none";
    };
    chat = {
      host = "beta";
      port = 9;
      protocol = "http";
      identity = "proxy-v2";
    };
    cache = {
      replicas = 1;
      port = 6;
      placement.strategy = "balanced";
    };
    cron = {
      host = "beta";
      port = 10;
      visibility = "host";
      limits = { };
    };
    shell = {
      replicas = "all";
      port = 7;
      sso = { };
    };
    docs = {
      host = "alpha";
      port = 4;
      visibility = "public";
      tlsName = "docs.example.org";
    };
  };
  providers.config = {
    hosts = [ "alpha" ];
    interval = 600;
    staleAfter = 601;
  };
  hosts.beta.capabilities = [ "ingress" ];
  roles.reader.services = [
    "chat"
    "dns"
    "wiki"
    "docs"
  ];
}
