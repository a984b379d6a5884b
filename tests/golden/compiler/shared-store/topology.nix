# Three hosts share a store, of which each keeps a member; two sign people in. Beta had a state before.
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
  providers = {
    cert.hosts = [
      "alpha"
      "beta"
      "gamma"
    ];
    oidc = {
      hosts = [
        "alpha"
        "beta"
      ];
      issuer = "https://auth.example.org";
    };
    store = {
      kind = "etcd";
      hosts = [
        "alpha"
        "beta"
        "gamma"
      ];
      from = [
        "beta"
        "alpha"
      ];
    };
  };
}
