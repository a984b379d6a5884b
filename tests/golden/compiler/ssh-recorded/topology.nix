# Sessions at shell are recorded for two recipients, who are written in another order and are sorted
# in the documents. Those at console are not recorded.
{ base, merge, ... }:
merge base {
  hosts.beta.users = [ "ann" ];
  services = {
    shell = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 22;
      protocol = "ssh";
      record = {
        recipients = [
          "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
          "age1gl2asgzfpgyldt5rpg5j4fdl6j43euvgm2lygtzs6t6vk87f79pstn46u8"
        ];
        days = 30;
      };
    };
    console = {
      host = "alpha";
      port = 2222;
      protocol = "ssh";
    };
  };
  users.ann.roles = [ "shells" ];
  roles.shells = {
    services = [
      "shell"
      "console"
    ];
    logins.shell = [ "deploy" ];
  };
  providers.ssh.hosts = [ "alpha" ];
}
