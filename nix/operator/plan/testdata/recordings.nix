# Of services with recorded sessions: shell is no longer recorded, nor is vault, which moves to another
# host. At git one of two people reads recordings no more, and they are kept for less time. At build
# it is the other way around. From now on console is recorded.
{ base, merge, ... }:
let
  carol = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
  dave = "age1gl2asgzfpgyldt5rpg5j4fdl6j43euvgm2lygtzs6t6vk87f79pstn46u8";
  shells = merge base {
    services = builtins.mapAttrs (_: s: { protocol = "ssh"; } // s) {
      shell = {
        hosts = [
          "alpha"
          "beta"
        ];
        port = 22;
        scope = "node";
      };
      vault = {
        host = "alpha";
        port = 2201;
      };
      git = {
        host = "beta";
        port = 2202;
      };
      build = {
        host = "beta";
        port = 2203;
      };
      console = {
        host = "beta";
        port = 2204;
      };
    };
    roles.reader.services = [
      "build"
      "console"
      "git"
      "shell"
      "vault"
      "wiki"
    ];
  };
in
{
  before = merge shells {
    services = {
      shell.record.recipients = [ carol ];
      vault.record.recipients = [ carol ];
      git.record.recipients = [
        carol
        dave
      ];
      build.record = {
        recipients = [ carol ];
        days = 30;
      };
    };
  };
  after = merge shells {
    services = {
      vault.host = "beta";
      git.record = {
        recipients = [ carol ];
        days = 1;
      };
      build.record = {
        recipients = [
          dave
          carol
        ];
        days = 60;
      };
      console.record.recipients = [ dave ];
    };
  };
}
