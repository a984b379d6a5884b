{ base, merge, ... }:
merge base {
  providers = {
    cert.hosts = [
      "alpha"
      "beta"
    ];
    store = {
      kind = "etcd";
      hosts = [
        "alpha"
        "beta"
      ];
    };
  };
}
