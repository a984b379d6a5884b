# Alice may read at the config provider. Root of mgmt01 may not at first, and may publish there
# later.
base: polled: closed:
let
  common = {
    roles = base.roles // {
      auditor.serviceGroups = [ "control-plane" ];
    };
    users.alice.roles = [
      "writer"
      "auditor"
    ];
  };

  # Every host may read the binary cache, and root of mgmt01 fills it and publishes.
  cached = polled {
    roles = base.roles // {
      node = base.roles.node // {
        serviceGroups = [ "nix-cache" ];
      };
      operator = base.roles.operator // {
        serviceGroups = base.roles.operator.serviceGroups ++ [ "nix-cache-write" ];
      };
    };
    serviceGroups = base.serviceGroups // {
      nix-cache = [ ];
      nix-cache-write = [ ];
    };
  };

  soon = polled (
    common
    // closed
    // {
      providers = base.providers // {
        config = base.providers.config // {
          interval = 2;
          staleAfter = 10;
        };
      };
    }
  );
in
[
  {
    name = "unoperated";
    change = polled (
      common
      // {
        hosts = base.hosts // {
          mgmt01 = base.hosts.mgmt01 // {
            roles = [ "writer" ];
          };
        };
      }
    );
  }
  {
    name = "operated";
    change = polled common;
  }
  # The SSH host key of raishan is not in the flake.
  {
    name = "joining";
    change = polled (
      common
      // {
        hosts = base.hosts // {
          raishan = removeAttrs base.hosts.raishan [ "sshHostKey" ];
        };
      }
    );
  }
  {
    name = "operated-closed";
    change = polled (common // closed);
  }
  # Each host must have it ten seconds after it is published.
  {
    name = "operated-soon";
    change = soon;
  }
  {
    name = "cached";
    change = cached;
  }
  {
    name = "cached-named";
    change = cached;
  }
]
