# An empty name is the name of nothing, wherever a name stands.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    group = "";
    users = [ "" ];
    roles = [ "" ];
    keeps = [ "" ];
  };
  hosts.beta.callers."" = [ "ann" ];
  hostGroups.eu = {
    users = [ "" ];
    roles = [ "" ];
  };
  services = {
    shell = {
      hosts = [ "" ];
      port = 99;
    };
    chat = {
      replicas = 1;
      port = 100;
      roles = [ "" ];
      placement = {
        group = "";
        pins = [ "" ];
        near = [ "" ];
        strategy = "locality";
        apart = [ "" ];
        apartByGroup = [ "" ];
      };
    };
    ports = {
      host = "beta";
      scope = "both";
      ports = {
        http = 80;
        dns = 53;
      };
    };
  };
  users.ann = {
    roles = [ "" ];
    until."" = "2999-01-31";
  };
  teams.staff = {
    users = [ "" ];
    teams = [ "" ];
    roles = [ "" ];
    usersUntil."" = "2999-01-31";
  };
  roles = {
    reader = {
      services = [ "" ];
      serviceGroups = [ "" ];
      roles = [ "" ];
      except = [ "" ];
    };
    parts = {
      services = [
        "@beta"
        ":"
        "@"
        "@:"
        "ports:"
        "ports@"
        "ports"
      ];
      except = [ ":dns" ];
    };
  };
  serviceGroups.apps = [ "" ];
  providers.cert.hosts = [ "" ];
  providers.file.hosts = [ "" ];
}
