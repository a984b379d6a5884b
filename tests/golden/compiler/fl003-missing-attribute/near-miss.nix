# Nobody calls gamma, so it needs no address.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    sshHostKey = key "gamma";
  };
  services.local = {
    host = "gamma";
    port = 9000;
    visibility = "host";
  };
}
