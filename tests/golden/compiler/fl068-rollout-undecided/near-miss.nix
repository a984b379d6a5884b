# Without waves each offers what was published to it, to all; the rest of it may stay.
{ base, merge, ... }:
merge base {
  providers.config.hosts = [
    "alpha"
    "beta"
  ];
  rollout.healthy = 60;
}
