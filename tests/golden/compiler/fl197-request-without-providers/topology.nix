{
  base,
  key,
  merge,
  ...
}:
merge base {
  providers.config.hosts = [ "alpha" ];
  hosts.alpha.users = [ "leo" ];
  users.leo = {
    roles = [ "operator" ];
    approvalKeys = [ (key "leo") ];
  };
  teams.ops.users = [ "ann" ];
  teams.leads.users = [ "leo" ];
  roles.oncall = {
    services = [ "wiki" ];
    request = {
      by = [ "ops" ];
      approve = [ "leads" ];
      most = 4;
    };
  };
}
