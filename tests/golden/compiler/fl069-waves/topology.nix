# Waves that reach no host, that select hosts in no way or in two, and a rest that is not last.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    tags = [ "ssd" ];
    group = "eu";
  };
  hostGroups.eu = { };
  providers.config.hosts = [ "alpha" ];
  rollout = {
    waves = [
      {
        tags = [
          "ssd"
          "canary"
        ];
      }
      { rest = true; }
      { percent = 30; }
      { percent = 30; }
      { }
      {
        percent = 50;
        tags = [ "ssd" ];
      }
    ];
    within = 900;
    maintenance = {
      moon.start = "02:30";
      eu = {
        days = [ ];
        start = "02:30";
      };
    };
  };
}
