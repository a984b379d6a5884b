# Who provides something has.
{ base, merge, ... }:
merge base {
  providers.store = {
    kind = "etcd";
    hosts = [ "alpha" ];
    from = [ "alpha" ];
  };
}
