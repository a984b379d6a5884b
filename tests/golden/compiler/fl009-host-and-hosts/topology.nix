{ base, merge, ... }:
merge base {
  services.wiki = {
    hosts = [ "alpha" ];
    identity = "http";
  };
  services.dns = {
    host = "beta";
    port = 53;
    protocol = "udp";
    identity = "proxy-v2";
  };
  services.clock = {
    host = "beta";
    port = 123;
    protocol = "udp";
    identity = "http";
  };
  services.blog = {
    host = "alpha";
    replicas = 2;
    port = 1;
    placement.near = [ "beta" ];
  };
  services.docs = {
    host = "alpha";
    port = 4;
    tlsName = "docs.example.org";
  };
  services.mail = {
    hosts = [
      "alpha"
      "beta"
    ];
    scope = "node";
    port = 5;
    visibility = "public";
    tlsName = "mail.example.org";
  };
  hosts.beta.capabilities = [ "ingress" ];
  roles.reader.services = [
    "clock"
    "dns"
    "wiki"
    "mail"
    "docs"
  ];
  services.cache = {
    host = "alpha";
    port = 6;
    placement.tags = [ "ssd" ];
  };
  services.shell = {
    replicas = "all";
    port = 7;
    placement.strategy = "balanced";
  };
  services.sign = {
    host = "alpha";
    port = 8;
    sso.restart = "sign.service";
  };
  services.cron = {
    host = "alpha";
    port = 10;
    visibility = "host";
    limits.connections = 10;
  };
  providers.config = {
    hosts = [ "alpha" ];
    interval = 600;
    staleAfter = 600;
  };
  services.shop = {
    host = "alpha";
    port = 2;
    listenPort = 3;
    upstream = "unix:/run/shop";
  };
}
