# Placement of services with replicas, by each strategy.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hostGroups = {
    eu = {
      tags = [ "europe" ];
      users = [ "ann" ];
    };
    "eu/fra" = {
      capabilities = [ "ssd" ];
    };
    "eu/ams" = { };
    us = {
      roles = [ "reader" ];
    };
  };
  hosts = {
    alpha.group = "eu/ams";
    beta.group = "eu/fra";
    gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
      group = "eu/fra";
    };
    delta = {
      address = "192.0.2.4";
      sshHostKey = key "delta";
      group = "us";
    };
    phone = {
      sshHostKey = key "phone";
      group = "eu/fra";
      kind = "device";
    };
  };
  services = {
    hashed = {
      replicas = 2;
      port = 1;
    };
    even-1 = {
      replicas = 2;
      port = 2;
      placement.strategy = "balanced";
    };
    even-2 = {
      replicas = 2;
      port = 3;
      placement.strategy = "balanced";
    };
    local = {
      replicas = 2;
      port = 4;
      placement = {
        strategy = "locality";
        near = [ "gamma" ];
      };
    };
    fitted = {
      replicas = 1;
      port = 5;
      placement = {
        tags = [ "europe" ];
        capabilities = [ "ssd" ];
      };
    };
    grouped = {
      replicas = 1;
      port = 6;
      placement.group = "us";
    };
    every = {
      replicas = "all";
      port = 7;
      scope = "node";
      placement.group = "eu";
    };
  };
  roles.reader.services = [
    "even-1"
    "even-2"
    "every"
    "fitted"
    "grouped"
    "hashed"
    "local"
    "wiki"
  ];
}
