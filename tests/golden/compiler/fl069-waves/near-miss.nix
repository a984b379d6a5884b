# A percentage that selects no host is no wave, and no fault: hosts are added and removed.
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
