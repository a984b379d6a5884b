{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.bind = [
    "0.0.0.0"
    "2001:db8::1"
  ];
  hosts.beta.bind = "::";
  hosts.gamma = {
    bind = [
      "2001:db8::1"
      "2001:db8::2"
    ];
    sshHostKey = key "gamma";
  };
}
