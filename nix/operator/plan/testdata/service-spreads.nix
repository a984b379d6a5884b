# The service stays reachable when it leaves one of its hosts: nobody gains or loses access.
{
  base,
  merge,
  key,
}:
let
  three = merge base {
    hosts.gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
    };
    services.wiki = {
      host = "";
      hosts = [
        "alpha"
        "beta"
      ];
    };
  };
in
{
  before = three;
  after = merge three {
    services.wiki.hosts = [
      "alpha"
      "gamma"
    ];
  };
}
