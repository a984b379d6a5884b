# Both services lead to one sshd, and one of them keeps its recordings for less time. On
# alpha, backup leads to the sshd that records for console, and mirror to that for serial, by the
# address of the host.
{ base, merge, ... }:
merge base {
  services = {
    shell = {
      host = "beta";
      port = 22;
      protocol = "ssh";
      record.recipients = [
        "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
        "age1gl2asgzfpgyldt5rpg5j4fdl6j43euvgm2lygtzs6t6vk87f79pstn46u8"
      ];
    };
    git = {
      host = "beta";
      upstream = "127.0.0.1:22";
      listenPort = 2222;
      protocol = "ssh";
      record = {
        recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
        days = 30;
      };
    };
    serial = {
      host = "alpha";
      port = 2200;
      protocol = "ssh";
      record.recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
    };
    mirror = {
      host = "alpha";
      upstream = "192.0.2.1:2200";
      listenPort = 2223;
    };
    backup = {
      host = "alpha";
      upstream = "localhost:22";
      listenPort = 2222;
    };
    console = {
      host = "alpha";
      port = 22;
      protocol = "ssh";
      record.recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
    };
  };
  roles.reader = {
    services = [
      "shell"
      "console"
    ];
    logins.shell = [ "deploy" ];
    logins.console = [ "deploy" ];
  };
  providers.ssh.hosts = [ "alpha" ];
}
