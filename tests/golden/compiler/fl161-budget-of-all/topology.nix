# A budget that permits to change all of its hosts at once.
{ base, merge, ... }:
merge base {
  hosts.alpha.tags = [ "etcd" ];
  hosts.beta.tags = [ "etcd" ];
  providers.config.hosts = [ "alpha" ];
  rollout.atOnce = [
    {
      tags = [ "etcd" ];
      most = 2;
    }
  ];
}
