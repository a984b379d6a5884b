{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.beta.sshHostKey = key "gamma" + " root@alpha";
  hosts.alpha.sshHostKey = key "alpha" + " root@alpha";
}
