# A hidden host that provides services only.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  pathSalt = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
  hosts.gate = {
    address = "192.0.2.3";
    relay = true;
    sshHostKey = key "gate";
  };
  hosts.beta = {
    hidden = true;
    relays = [ "gate" ];
  };
}
