# Both are recorded in the same way, with the recipients in another order.
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
        recipients = [
          "age1gl2asgzfpgyldt5rpg5j4fdl6j43euvgm2lygtzs6t6vk87f79pstn46u8"
          "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
        ];
        days = 90;
      };
    };
    # Another sshd.
    console = {
      host = "beta";
      port = 2200;
      protocol = "ssh";
    };
  };
  roles.reader = {
    services = [ "shell" ];
    logins.shell = [ "deploy" ];
  };
  providers.ssh.hosts = [ "alpha" ];
}
