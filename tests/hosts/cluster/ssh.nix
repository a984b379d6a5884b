# Alice logs in over SSH: as deploy on ursula and raishan, and as root on raishan. Later she no longer
# may log in on ursula, the keys that sign certificates are replaced, and sessions are recorded. As
# rescue on raishan she may log in while she is on call, which Ben approves.
base: polled: facts:
let
  # The scenario has the private key.
  auditor = "age17lfzztu30nm383qxk52n5qdc4edednzv22f5336msjkgh8g3jshse9ufwr";
  shells =
    {
      hosts,
      generation,
      recorded,
    }:
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
        }
        // (if recorded then { record.recipients = [ auditor ]; } else { });
      };
      hosts = base.hosts // {
        mgmt01 = base.hosts.mgmt01 // {
          users = [ "ben" ];
        };
      };
      users = {
        alice.roles = [
          "admin"
          "auditor"
          "shells"
          "writer"
        ];
        ben = {
          roles = [ "auditor" ];
          approvalKeys = [ facts.nextHostKey ]; # no host here has it
        };
      };
      teams = {
        ops.users = [ "alice" ];
        leads.users = [ "ben" ];
      };
      roles = base.roles // {
        auditor.serviceGroups = [ "control-plane" ];
        oncall = {
          services = [ "shell" ];
          logins."shell@raishan" = [ "rescue" ];
          request = {
            by = [ "ops" ];
            approve = [ "leads" ];
            most = 4;
          };
        };
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
      recorded = false;
    };
  }
  {
    name = "shells-renewed";
    change = shells {
      hosts = both;
      generation = 2;
      recorded = true;
    };
  }
  {
    name = "shells-closed";
    change = shells {
      hosts = [ "raishan" ];
      generation = 2;
      recorded = true;
    };
  }
]
