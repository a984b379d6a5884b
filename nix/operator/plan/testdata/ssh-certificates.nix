# Ben gets a login on beta, hence a certificate there, and certificates become valid for longer.
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
    users.ann.roles = [
      "admin"
      "reader"
    ];
    hosts.beta.users = [
      "ann"
      "ben"
    ];
    roles = {
      reader.services = [
        "shell"
        "wiki"
      ];
      admin.logins."shell@alpha" = [ "deploy" ];
    };
    providers.ssh.hosts = [ "alpha" ];
  };
in
{
  before = shells;
  after = merge shells {
    users.ben.roles = [
      "deployer"
      "reader"
    ];
    roles.deployer.logins."shell@beta" = [ "deploy" ];
    providers.ssh.lifetime = 7200;
  };
}
