# Two providers of documents would each decide how far a version has come.
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
