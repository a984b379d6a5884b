# Recordings that cannot be made or read as they are written.
{ base, merge, ... }:
let
  recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
  ssh =
    more:
    {
      host = "beta";
      port = 22;
      protocol = "ssh";
    }
    // more;
in
merge base {
  services = {
    desk = {
      host = "beta";
      port = 3389;
      protocol = "rdp";
      record = { inherit recipients; };
    };
    several = {
      host = "beta";
      ports.shell = 2201;
      record = { inherit recipients; };
    };
    hidden = ssh {
      port = 2202;
      visibility = "host";
      record = { inherit recipients; };
    };
    nobody = ssh {
      port = 2203;
      record.recipients = [ ];
    };
    days = ssh {
      port = 2204;
      record.days = 30;
    };
    long = ssh {
      port = 2205;
      record = {
        inherit recipients;
        days = 4000;
      };
    };
    keys = ssh {
      port = 2206;
      record.recipients = [
        # The last letter is wrong.
        "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8q"
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPv5gaM16+VlLEmM75ydLIatQFRkLjebQdcWf3wPl+JO"
        "AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0SW8ZC0"
      ];
    };
    all = ssh {
      port = 2207;
      record = true;
    };
  };
}
