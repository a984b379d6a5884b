# Alice logs in over SSH: as deploy on ursula and raishan, and as root on raishan. Later she no longer
# may log in on ursula, and the keys that sign certificates are replaced.
base: polled:
let
  shells =
    { hosts, generation }:
    polled {
      services = base.services // {
        shell = {
          hosts = [
            "raishan"
            "ursula"
          ];
          port = 22;
          scope = "node";
          protocol = "ssh";
        };
      };
      users.alice.roles = [
        "admin"
        "shells"
        "writer"
      ];
      roles = base.roles // {
        shells = {
          services = [ "shell" ];
          logins = builtins.listToAttrs (
            map (h: {
              name = "shell@${h}";
              value = [ "deploy" ];
            }) hosts
          );
        };
        admin = {
          logins."shell@raishan" = [ "root" ];
          privileged = true;
        };
      };
      providers = base.providers // {
        config = base.providers.config // {
          interval = 2;
        };
        ssh = {
          hosts = [ "drhorrible" ];
          inherit generation;
        };
      };
    };
  both = [
    "raishan"
    "ursula"
  ];
in
[
  {
    name = "shells";
    change = shells {
      hosts = both;
      generation = 1;
    };
  }
  {
    name = "shells-renewed";
    change = shells {
      hosts = both;
      generation = 2;
    };
  }
  {
    name = "shells-closed";
    change = shells {
      hosts = [ "raishan" ];
      generation = 2;
    };
  }
]
