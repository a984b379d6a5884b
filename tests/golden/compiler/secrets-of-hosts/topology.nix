# Secrets that hosts read by their group and tags: one that all share, and one for each host, which
# a service on the host reads too.
{ base, merge, ... }:
merge base {
  hostGroups = {
    eu = { };
    "eu/fra".tags = [ "backed-up" ];
  };
  hosts.alpha = {
    group = "eu";
    tags = [ "ssd" ];
  };
  hosts.beta = {
    group = "eu/fra";
    tags = [ "ssd" ];
  };
  secrets = {
    mesh = {
      generate = "hex";
      readers = [ { group = "eu"; } ];
    };
    backup = {
      generate = "password";
      perHost = true;
      readers = [
        {
          tags = [
            "backed-up"
            "ssd"
          ];
          restart = "backup.service";
        }
        { service = "wiki"; }
      ];
    };
    key = {
      generate = "ssh";
      perHost = true;
      readers = [ { group = "eu"; } ];
    };
  };
  providers.secret.hosts = [ "alpha" ];
}
