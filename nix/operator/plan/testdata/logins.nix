# The shell on beta becomes an SSH service with logins; ann's login as root gets an end, and ben loses
# his.
{ base, merge, ... }:
let
  shells = merge base {
    services.shell = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 22;
      scope = "node";
      protocol = "ssh";
    };
    services.ftp = {
      host = "beta";
      port = 2222;
    };
    users.ann.roles = [
      "admin"
      "reader"
    ];
    users.ben.roles = [
      "former"
      "reader"
    ];
    hosts.beta.users = [
      "ann"
      "ben"
    ];
    roles = {
      reader.services = [
        "ftp"
        "shell"
        "wiki"
      ];
      admin = {
        logins."shell@beta" = [ "root" ];
        privileged = true;
      };
      former.logins."shell@alpha" = [ "backup" ];
    };
    providers.ssh.hosts = [ "alpha" ];
  };
in
{
  before = shells;
  after = merge shells {
    services.ftp.protocol = "ssh";
    users.ann = {
      roles = [ "reader" ];
      until.admin = "2038-01-01";
    };
    users.ben.roles = [ "reader" ];
    roles.reader.logins."shell@alpha" = [ "deploy" ];
    roles.former.logins = { };
  };
}
