# Names of services in other forms, in another order and misspelled. A suggestion exists, and never
# grants more than the written name.
{
  base,
  key,
  merge,
}:
merge base {
  hosts = {
    alpha.group = "eu";
    gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
      group = "us/nyc";
      tags = [ "ssd" ];
    };
  };
  hostGroups = {
    eu = { };
    us = { };
    "us/nyc" = { };
  };
  services = {
    wiki = {
      port = null;
      ports = {
        http = {
          port = 8080;
          listenPort = 80;
        };
        metrics = 9100;
      };
    };
    shell = {
      replicas = "all";
      port = 22;
      scope = "node";
    };
    vault = {
      host = "alpha";
      port = 8200;
    };
    mail = {
      hosts = [
        "alpha"
        "gamma"
      ];
      port = 25;
      scope = "both";
      ports = { };
    };
  };
  clusters.blue.services.tickets = {
    address = "gate.example.org:4610";
    port = 443;
  };
  roles.reader.services = [
    "tickets@bleu"
    "tickets.blue"
    "ticket@nowhere"
    "metrics@wiki"
    "wiki.metrics"
    "wiki.metric"
    "wiki.beta"
    "wiki:metrics@beta"
    "wiki:metrics@gamma"
    "wiki:hunter2@beta"
    "http://wiki.golden.flor.rete"
    "http://wiki.golden.flor.rete:9100/metrics"
    "https://wiki.golden.flor.rete"
    "http://vault.golden.flor.rete"
    "wiki.golden.flor.rete"
    "vault.alpha"
    "vault.gamma"
    "shell.eu"
    "shell.gama"
    "us/nyc/shell"
    "ssd@shell"
    "shell.alpha.golden.flor.rete"
    "shell.golden.flor.rete"
    "shell.nowhere"
    "shell@eu@us"
    "mail:smtp@alpha"
    "http://user:hunter2@wiki.golden.flor.rete"
  ];
}
