# Higher limits and removed limits widen access; a new service with limits does not.
{
  base,
  key,
  merge,
}:
let
  clusterWith =
    services: users: gate: news:
    merge base {
      services = {
        blog = {
          host = "beta";
          port = 8081;
          limits = services.blog;
        };
        wiki.limits = services.wiki;
      }
      // news;
      users.ann.limits = users;
      hosts.gate = {
        address = "192.0.2.3";
        relay = true;
        relayLimits = gate;
        sshHostKey = key "gate";
      };
      roles.reader.services = [
        "blog"
        "wiki"
      ]
      ++ builtins.attrNames news;
    };
in
{
  before =
    clusterWith
      {
        blog.connections = 10;
        wiki = {
          connections = 100;
          opensPerSecond = 20;
        };
      }
      {
        bytesPerSecond = 1000000;
        connections = 50;
      }
      {
        bytesPerSecond = 1000000;
        connections = 100;
      }
      { };
  after =
    clusterWith
      {
        blog = { };
        wiki = {
          connections = 200;
          opensPerSecond = 10;
          bytesPerSecond = 5000000;
        };
      }
      {
        bytesPerSecond = 1000000;
      }
      { connections = 50; }
      {
        news = {
          host = "beta";
          port = 8083;
          limits.connections = 7;
        };
      };
}
