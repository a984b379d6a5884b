# Services placed on a drained host move away; services that name the host stay.
{
  base,
  key,
  merge,
  ...
}:
let
  before = merge base {
    hosts.gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
    };
    services.search = {
      replicas = 2;
      port = 9200;
    };
    roles.reader.services = [
      "search"
      "wiki"
    ];
  };
in
{
  inherit before;
  after = merge before { hosts.beta.drain = true; };
}
