{
  address = "192.0.2.1";
  # The line of /etc/ssh/ssh_host_ed25519_key.pub on the host.
  sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHlU6cAOaefnivrZ7DgwHThwyANkXej7Pt7IqEt0Kkmw";
}
