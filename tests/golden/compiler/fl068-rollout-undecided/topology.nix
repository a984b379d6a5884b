# Two providers of documents would each decide the progress of a rollout.
{ base, merge, ... }:
merge base {
  providers.config.hosts = [
    "alpha"
    "beta"
  ];
  rollout.waves = [
    { percent = 10; }
    { rest = true; }
  ];
}
