# One member is a store that others share, though none may fail.
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
