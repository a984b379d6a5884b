# What proves a node: the SSH host key that the flake declares, or a device key that an
# operator admitted.
{ id, sshHostKey, ... }:
if sshHostKey == "" then
  {
    inherit id;
    joins = true;
  }
else
  { inherit id sshHostKey; }
