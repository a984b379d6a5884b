# The upstream is the sshd of the host, at another address of its loopback network.
{ base, merge, ... }:
merge base {
  services.shell = {
    host = "beta";
    upstream = "127.0.0.2:22";
    listenPort = 22;
    protocol = "ssh";
    record.recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
  };
  roles.reader = {
    services = [ "shell" ];
    logins.shell = [ "deploy" ];
  };
  providers.ssh.hosts = [ "alpha" ];
}
