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
    approvalKeys = [
      (key "leo")
      "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIN1W3kE3lR2ckmgbA0FuwV+Ia0SCon46UX0y8IUkTL5dAAAABHNzaDo="
    ];
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
