# The same access, as it is expected.
{ base, merge, ... }:
merge base {
  hosts.alpha.group = "eu";
  hostGroups.eu.roles = [ "ops" ];
  services = {
    blog = {
      host = "beta";
      ports.http = 8081;
      ports.metrics = 9100;
    };
    secret = {
      host = "beta";
      port = 8082;
      visibility = "host";
    };
    shell = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 22;
      scope = "node";
    };
    vault = {
      host = "beta";
      port = 8200;
    };
  };
  users.bob.roles = [ "ops" ];
  users.carol.roles = [ ];
  hosts.beta.users = [
    "ann"
    "carol"
  ];
  teams.night = {
    users = [ "ann" ];
    roles = [ "ops" ];
  };
  providers.config.hosts = [ "alpha" ];
  roles = {
    ops.serviceGroups = [ "control-plane" ];
    ops.services = [
      "blog:http"
      "shell@beta"
      "secret"
    ];
    other.services = [
      "blog"
      "vault"
    ];
    some.services = [ "shell" ];
  };
  expect = [
    {
      who = "ann";
      reaches = [
        "wiki"
        "blog:http"
        "shell@beta"
        "florete-control"
      ];
      not = [
        "vault"
        "secret"
        "blog:metrics"
        "shell@alpha"
      ];
    }
    {
      who = "node/alpha";
      reaches = [ "shell@beta" ];
      not = [ "wiki" ];
    }
    {
      who = "wiki";
      not = [
        "blog"
        "florete-control"
        "florete-cache"
      ];
    }
  ];
}
