{
  base,
  key,
  merge,
  ...
}:
merge base { hosts.beta.sshHostKey = key "alpha" + " another comment"; }
