# Hosts that do not relay, in the relays of a host and of a group, and with limits of a relay; an
# unknown host, and the host itself.
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
    relays = [ "gate" ];
    sshHostKey = key "gate";
  };
  hosts.alpha.relayLimits.bytesPerSecond = 1000000;
  hosts.beta.relays = [
    "alpha"
    "gat"
  ];
  hosts.nas = {
    group = "home";
    sshHostKey = key "nas";
  };
  hostGroups.home.relays = [ "beta" ];
}
