# Nobody holds a role that leads to the reserved service, so it does not exist.
{ base, merge, ... }:
merge base {
  users.away.roles = [ "operator" ];
  roles.auditor.serviceGroups = [ "control-plane" ];
  providers.config.hosts = [ "alpha" ];
}
