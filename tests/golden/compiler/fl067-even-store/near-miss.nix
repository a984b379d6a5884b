# A store with one member can be shared, although it does not survive the loss of that member.
{ base, merge, ... }:
merge base {
  providers = {
    cert.hosts = [
      "alpha"
      "beta"
    ];
    store = {
      kind = "etcd";
      hosts = [ "alpha" ];
    };
  };
}
