# The same with a salt.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gate = {
    address = "192.0.2.3";
    relay = true;
    sshHostKey = key "gate";
  };
  hosts.beta.relays = [ "gate" ];
  pathSalt = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
}
