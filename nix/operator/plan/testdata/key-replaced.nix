{
  base,
  merge,
  key,
}:
{
  after = merge base { hosts.beta.sshHostKey = key "another"; };
}
