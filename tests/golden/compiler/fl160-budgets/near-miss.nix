# A budget without waves: a version reaches all hosts in one wave.
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
