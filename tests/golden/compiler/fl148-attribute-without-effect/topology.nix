# beta is not drained, and no role permits logins at the sshd of alpha.
{ base, merge, ... }:
merge base {
  hosts.beta.keeps = [ "search" ];
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
  roles.reader.logins."shell@beta" = [ "deploy" ];
  providers.ssh.hosts = [ "alpha" ];
}
