# A host behind a relay, without a salt for the names that the relay sees.
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
}
