# Three hosts share a store and each has a member; two sign people in. The state of beta moves in.
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
