# A share that no host is in is no wave, and no fault: hosts come and go.
{ base, merge, ... }:
merge base {
  providers.config.hosts = [ "alpha" ];
  rollout = {
    waves = [
      { percent = 1; }
      { rest = true; }
    ];
    within = 901;
  };
}
