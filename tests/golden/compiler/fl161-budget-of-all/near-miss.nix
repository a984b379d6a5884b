# One host after the other.
{ base, merge, ... }:
merge base {
  hosts = {
    alpha.tags = [ "etcd" ];
    beta.tags = [ "etcd" ];
  };
  providers.config.hosts = [ "alpha" ];
  rollout.atOnce = [
    {
      tags = [ "etcd" ];
      most = 1;
    }
  ];
}
