# How a node proves itself: with the SSH host key in the flake, or with a device key that an
# operator admitted.
{ id, sshHostKey, ... }:
if sshHostKey == "" then
  {
    inherit id;
    joins = true;
  }
else
  { inherit id sshHostKey; }
