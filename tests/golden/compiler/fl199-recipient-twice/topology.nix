# A key is in the list twice, instead of the key of a second person.
{ base, merge, ... }:
merge base {
  services.shell = {
    host = "beta";
    port = 22;
    protocol = "ssh";
    record.recipients = [
      "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
      "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
    ];
  };
  roles.reader = {
    services = [ "shell" ];
    logins.shell = [ "deploy" ];
  };
  providers.ssh.hosts = [ "alpha" ];
}
