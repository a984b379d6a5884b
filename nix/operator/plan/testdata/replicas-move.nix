# An added host takes its share of the services, as the plan says before.
{
  base,
  merge,
  key,
}:
let
  host = n: {
    address = "192.0.2.${toString (10 + n)}";
    sshHostKey = key "n${toString n}";
  };
  replicated = merge base {
    hosts = {
      n1 = host 1;
      n2 = host 2;
      n3 = host 3;
    };
    services.cache = {
      port = 6379;
      replicas = 2;
      placement.strategy = "minimize-movement";
    };
    services.queue = {
      port = 5672;
      replicas = 2;
      placement.strategy = "minimize-movement";
    };
    roles.reader.services = [
      "cache"
      "queue"
      "wiki"
    ];
  };
in
{
  before = replicated;
  after = merge replicated { hosts.n5 = host 4; };
}
