{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    cordon = true;
    keeps = [ "search" ];
  };
  services.search = {
    replicas = 1;
    port = 9001;
  };
  roles.reader.services = [
    "search"
    "shell"
    "wiki"
  ];
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
    protocol = "ssh";
    record.recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
  };
  roles.reader.logins.shell = [ "deploy" ];
  providers.ssh.hosts = [ "alpha" ];
}
