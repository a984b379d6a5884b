# A relay with relays, which is in the group that names it.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gate = {
    address = "192.0.2.3";
    group = "home";
    relay = true;
    sshHostKey = key "gate";
  };
  hosts.far = {
    address = "192.0.2.4";
    relay = true;
    relays = [ "gate" ];
    sshHostKey = key "far";
  };
  hosts.beta.relays = [ "far" ];
  hostGroups.home.relays = [
    "far"
    "gate"
  ];
}
