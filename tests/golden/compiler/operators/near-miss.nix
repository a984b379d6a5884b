# Nobody holds a role that leads there: there is no such service.
{ base, merge, ... }:
merge base {
  users.away.roles = [ "operator" ];
  roles.auditor.serviceGroups = [ "control-plane" ];
  providers.config.hosts = [ "alpha" ];
}
