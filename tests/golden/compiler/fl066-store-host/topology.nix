# A member that provides nothing, and a host key to which age cannot encrypt.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.beta.sshHostKey = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
  };
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
        "gamma"
      ];
    };
  };
}
