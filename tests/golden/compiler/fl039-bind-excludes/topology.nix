{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.bind = [
    "0.0.0.0"
    "10.0.0.1"
  ];
  hosts.beta.bind = [
    "::"
    "10.0.0.1"
  ];
  hosts.gamma = {
    bind = [
      "2001:db8::1"
      "2001:DB8:0::1"
    ];
    sshHostKey = key "gamma";
  };
}
