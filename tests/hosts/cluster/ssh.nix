# Alice logs in over SSH: as deploy on ursula and raishan, and as root on raishan. Later she no longer
# may log in on ursula, and the keys that sign certificates are replaced. As rescue on raishan she may
# log in while she is on call, which Ben approves.
base: polled: facts:
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
