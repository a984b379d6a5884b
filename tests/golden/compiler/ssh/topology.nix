# Logins over SSH: ann may log in on both hosts, as root on beta until a date. ben holds a role that
# contains hers, and acts under another account.
{ base, merge, ... }:
merge base {
  hosts.beta = {
    users = [
      "ann"
      "ben"
    ];
    callers."user/ben" = [ "benjamin" ];
    tags = [ "eu" ];
  };
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "both";
    protocol = "ssh";
  };
  users = {
    ann = {
      roles = [
        "reader"
        "shells"
      ];
      until.admin = "2038-01-01";
    };
    ben.roles = [ "lead" ];
  };
  roles = {
    shells = {
      services = [ "shell" ];
      logins.shell = [
        "deploy"
        "backup"
      ];
    };
    admin = {
      logins."shell@eu" = [
        "root"
        "deploy"
      ];
      privileged = true;
    };
    lead.roles = [ "shells" ];
  };
  providers.ssh = {
    hosts = [ "alpha" ];
    lifetime = 1800;
  };
}
