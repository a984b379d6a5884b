# Waves by tag, by percentage and the rest; a maintenance window of a group inside another, on some
# days. A host whose documents come with its system is in no wave, and still in a budget.
{ base, key, merge, ... }:
merge base {
  hosts = {
    alpha.tags = [
      "canary"
      "ssd"
    ];
    beta = {
      tags = [ "canary" ];
      group = "eu/fra";
    };
    gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
      group = "eu";
    };
    delta = {
      address = "192.0.2.4";
      sshHostKey = key "delta";
      group = "eu/fra";
    };
    sealed = {
      address = "192.0.2.5";
      sshHostKey = key "sealed";
      deploy = "closure";
      tags = [ "canary" ];
    };
  };
  hostGroups = {
    eu = { };
    "eu/fra" = { };
  };
  providers.config.hosts = [ "alpha" ];
  rollout = {
    waves = [
      {
        tags = [
          "canary"
          "ssd"
        ];
      }
      { percent = 40; }
      { percent = 41; }
      { rest = true; }
    ];
    healthy = 300;
    atOnce = [
      {
        tags = [
          "canary"
          "ssd"
        ];
        most = 1;
      }
      {
        tags = [ "canary" ];
        most = 2;
      }
    ];
    maintenance = {
      eu = {
        days = [ "sun" ];
        start = "23:00";
      };
      "eu/fra".start = "02:30";
    };
  };
}
