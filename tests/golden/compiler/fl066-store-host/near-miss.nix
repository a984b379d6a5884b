# Hosts that provide any kind may have a member, and several may sign people in.
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
    };
  };
}
