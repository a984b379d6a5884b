# The sessions run on a machine without an agent.
{ base, merge, ... }:
merge base {
  services.shell = {
    host = "beta";
    upstream = "192.0.2.9:22";
    listenPort = 22;
    protocol = "ssh";
    record.recipients = [ "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" ];
  };
}
