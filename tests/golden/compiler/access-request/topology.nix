{
  base,
  key,
  merge,
  ...
}:
merge base {
  providers.config.hosts = [ "alpha" ];
  hosts.alpha.users = [ "leo" ];
  users.ann.roles = [ "operator" ];
  users.bob.roles = [ "operator" ];
  users.leo = {
    roles = [ "operator" ];
    approvalKeys = [ (key "leo") ];
  };
  teams.ops.users = [ "ann" ];
  teams.leads.users = [ "leo" ];
  teams.night.users = [ "bob" ];
  roles.oncall = {
    services = [
      "shell"
      "wiki"
    ];
    logins.shell = [ "deploy" ];
    request = {
      by = [ "ops" ];
      approve = [ "leads" ];
      most = 4;
    };
  };
  services.shell = {
    host = "alpha";
    port = 22;
    protocol = "ssh";
  };
  providers.ssh.hosts = [ "alpha" ];
}
