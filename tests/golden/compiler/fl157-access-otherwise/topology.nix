# Access that is lacking, in part or wholly, and access that a role, a team or a group gives.
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
        "blog"
        "vault"
        "shell"
        "secret"
      ];
      not = [
        "blog"
        "wiki"
        "shell@beta"
        "florete-control"
      ];
    }
    {
      who = "alpha";
      reaches = [ "florete-cache" ];
      not = [ "shell" ];
    }
    {
      who = "bob";
      reaches = [ "blog:http" ];
    }
    {
      who = "service/wiki";
      reaches = [
        "blog:metrics"
        "florete-control"
      ];
    }
  ];
}
