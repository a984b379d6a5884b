# In the first two revisions, hosts call addresses that no host has, until they go back.
base: good:
let
  change.hosts = base.hosts // {
    drhorrible = base.hosts.drhorrible // {
      address = "203.0.113.1";
    };
    ursula = base.hosts.ursula // {
      address = "203.0.113.3";
    };
  };
in
[
  {
    name = "unreachable";
    inherit change;
  }
  {
    name = "unreachable-still";
    inherit change;
  }
  {
    name = "reachable";
    change = good;
  }
]
