# All callers still reach the service, through the host that does not change.
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
    hosts.delta = {
      address = "192.0.2.4";
      sshHostKey = key "delta";
    };
    services.wiki = {
      host = "";
      hosts = [
        "gamma"
        "delta"
      ];
    };
  };
in
{
  before = three;
  after = merge three { services.wiki.hosts = [ "gamma" ]; };
}
