# Several hosts on one machine, as in the demo.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.address = "127.0.0.1";
  hosts.beta.address = "127.0.0.2";
  hosts.gamma = {
    address = "::1";
    sshHostKey = key "gamma";
  };
  hosts.laptop.sshHostKey = key "laptop";
}
