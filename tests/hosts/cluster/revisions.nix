# Each revision is the cluster with one change, and is newer than those before. A rollout also uses
# the serials next to its own.
# facts: addresses and SSH host keys by host, nextHostKey, and keys that sign documents.
# roots, nextRoots: the trusted roots, and their replacement.
{
  mkCluster,
  self ? { },
  serial ? self.lastModified,
  facts,
  roots,
  nextRoots,
}:
let
  base = import ./topology.nix { inherit facts roots; };
  wiki = [ "wiki" ];

  secret = import ./secret.nix base;

  # Hosts poll for documents every two seconds.
  polled =
    change:
    {
      providers = base.providers // {
        config = base.providers.config // {
          interval = 2;
        };
      };
    }
    // change;
  news = {
    services = base.services // {
      news = {
        host = "raishan";
        port = 4656;
        listenPort = 80;
      };
    };
    serviceGroups = base.serviceGroups // {
      apps = base.serviceGroups.apps ++ [ "news" ];
    };
  };
  # A name server, over UDP.
  datagrams = {
    providers = brief;
    services = base.services // {
      names = {
        host = "ursula";
        port = 5353;
        listenPort = 53;
        protocol = "udp";
      };
    };
    serviceGroups = base.serviceGroups // {
      apps = base.serviceGroups.apps ++ [ "names" ];
    };
  };
  brief = base.providers // {
    cert = base.providers.cert // {
      lifetime = 10;
    };
  };
  closed = {
    services = removeAttrs base.services wiki;
    serviceGroups = base.serviceGroups // {
      apps = [
        "auth"
        "outline"
      ];
    };
  };
  # Another root, and new secrets.
  afterTheft = {
    trust = {
      signingKeys = facts.keys;
      roots = nextRoots;
    };
    services = base.services // {
      outline = base.services.outline // {
        sso = base.services.outline.sso // {
          generation = 2;
        };
      };
    };
  };
  replaced = name: {
    hosts = base.hosts // {
      ${name} = base.hosts.${name} // {
        sshHostKey = facts.nextHostKey;
      };
    };
  };

  revisions = [
    {
      name = "base";
      change = { };
    }
    # Certificates live for seconds, so that scenarios see their renewal.
    {
      name = "brief";
      change.providers = brief;
    }
    {
      name = "without-wiki";
      change = closed;
    }
    {
      name = "new-host-key";
      change = replaced "ursula";
    }
    {
      name = "with-file";
      change = secret 1;
    }
    {
      name = "file-rotated";
      change = secret 2;
    }
    {
      name = "polled";
      change = polled { };
    }
    {
      name = "wiki-closed";
      change = polled closed;
    }
    {
      name = "without-raishan";
      change = polled { hosts = removeAttrs base.hosts [ "raishan" ]; };
    }
    {
      name = "polled-again";
      change = polled { };
    }
    {
      name = "news";
      change = polled news;
    }
    {
      name = "provider-replaced";
      change = replaced "drhorrible";
    }
    {
      name = "new-root";
      change = afterTheft;
    }
    {
      name = "host-api";
      change = import ./hostapi.nix base;
    }
    {
      name = "datagrams";
      change = datagrams;
    }
    {
      name = "addresses";
      change = import ./addresses.nix base facts;
    }
    {
      name = "relayed";
      change = import ./relayed.nix base;
    }
    {
      name = "workload";
      change = import ./workload.nix base;
    }
    {
      name = "named";
      change = import ./named.nix base;
    }
    {
      name = "ingress";
      change = import ./ingress.nix base;
    }
  ]
  ++ import ./replicated.nix base
  ++ import ./operators.nix base polled closed
  ++ import ./ssh.nix base polled facts
  ++ import ./undone.nix base news
  ++ import ./rotations.nix base facts roots
  ++ import ./rollouts.nix serial base polled news;
  numbered = builtins.genList (i: builtins.elemAt revisions i // { inherit i; }) (
    builtins.length revisions
  );
in
builtins.listToAttrs (
  map (r: {
    inherit (r) name;
    value = mkCluster (
      base
      // r.change
      // {
        inherit self;
        serial = serial + 3 * r.i;
      }
    );
  }) numbered
)
