{
  kind = "device";
  sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDnpWUTLVKNudtXBI7H7IgN6BXXHXCZyikO28pAUAZSB";
  users = [ "alice" ];
}
