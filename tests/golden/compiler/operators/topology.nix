# Operators of the config providers: nodes, users, services and whole groups of hosts, some only for
# reading. One of the two providers is a second instance. The role `node`, a role without holders,
# and a user on no host give nobody access.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts = {
    alpha = {
      instance = "blue";
      roles = [ "operator" ];
      users = [ "dora" ];
    };
    gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
      group = "ops";
    };
  };
  hostGroups.ops.roles = [ "auditor" ];
  services.console = {
    host = "beta";
    port = 9090;
    roles = [ "auditor" ];
  };
  users = {
    dora.roles = [
      "operator"
      "auditor"
    ];
    away.roles = [ "operator" ];
  };
  roles = {
    auditor = {
      services = [ "console" ];
      serviceGroups = [ "control-plane" ];
    };
    unused.serviceGroups = [ "control-plane-write" ];
  };
  serviceGroups.control-plane = [ "wiki" ];
  providers.config.hosts = [
    "gamma"
    "alpha"
  ];
}
