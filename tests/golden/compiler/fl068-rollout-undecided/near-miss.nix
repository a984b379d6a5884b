# Without waves each provider offers its version to all hosts at once; the other attributes may
# stay.
{ base, merge, ... }:
merge base {
  providers.config.hosts = [
    "alpha"
    "beta"
  ];
  rollout.healthy = 60;
}
