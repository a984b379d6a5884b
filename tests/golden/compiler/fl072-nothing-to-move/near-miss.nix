# A host that provides something has state.
{ base, merge, ... }:
merge base {
  providers.store = {
    kind = "etcd";
    hosts = [ "alpha" ];
    from = [ "alpha" ];
  };
}
