# A host that provides nothing has no state to move.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
  };
  providers.store = {
    kind = "etcd";
    hosts = [ "alpha" ];
    from = [ "gamma" ];
  };
}
