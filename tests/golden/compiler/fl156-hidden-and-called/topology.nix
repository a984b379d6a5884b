# A relay and a provider that are hidden.
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
  hosts.far = {
    address = "192.0.2.4";
    hidden = true;
    relay = true;
    relays = [ "gate" ];
    sshHostKey = key "far";
  };
  hosts.alpha = {
    hidden = true;
    relays = [ "gate" ];
  };
}
