# Changes to the instances on many hosts are listed together.
{
  base,
  merge,
  key,
}:
let
  numbers = builtins.genList (n: n + 10) 30;
  fleet =
    f:
    builtins.listToAttrs (
      map (n: {
        name = "h${toString n}";
        value = f n;
      }) numbers
    );
  many = merge base {
    hosts = fleet (n: {
      address = "192.0.2.${toString n}";
      sshHostKey = key "h${toString n}";
    });
    services.shell = {
      replicas = "all";
      port = 22;
      scope = "node";
    };
    users.ben.roles = [ ];
    roles.keeper.services = [ "shell" ];
    hostGroups.eu = { };
  };
in
{
  before = merge many {
    users.ann.roles = [ "keeper" ];
    hosts.old = {
      address = "192.0.2.91";
      sshHostKey = key "old";
    };
  };
  after = merge many {
    users.ann.roles = [ "keeper" ];
    hosts =
      fleet (_: {
        roles = [ "reader" ];
        callers.node = [
          "root"
          "wheel"
        ];
      })
      // {
        h1 = {
          address = "192.0.2.90";
          sshHostKey = key "h1";
          users = [ "ben" ];
        };
      };
    users.ben.roles = [ "keeper" ];
  };
}
