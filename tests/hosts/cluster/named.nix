# Two services that learn their callers: from headers of requests, and from a header before the
# bytes of a connection, on a socket in a directory of the forwarder's group.
base:
let
  named =
    more:
    {
      host = "ursula";
      user = "shown";
    }
    // more;
in
{
  services = base.services // {
    shown = named {
      port = 4657;
      listenPort = 80;
      protocol = "http";
      identity = "http";
    };
    bytes = named {
      listenPort = 7;
      upstream = "unix:/run/bytes/socket";
      identity = "proxy-v2";
    };
  };
  serviceGroups = base.serviceGroups // {
    apps = base.serviceGroups.apps ++ [
      "bytes"
      "shown"
    ];
  };
}
