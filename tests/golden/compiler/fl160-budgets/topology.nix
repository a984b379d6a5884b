# Budgets of no host, without tags, of no number, and one that holds no host back.
{ base, merge, ... }:
merge base {
  hosts.alpha.tags = [ "etcd" ];
  providers.config.hosts = [ "alpha" ];
  rollout.atOnce = [
    {
      tags = [
        "etcd"
        "ssd"
      ];
      most = 1;
    }
    { most = 1; }
    {
      tags = [ "etcd" ];
      most = 0;
    }
    {
      tags = [ "etcd" ];
      most = 1;
    }
  ];
}
