# A host that is not there, one where the service does not run, a group where it does not, a
# service that is not there; and one host's own written as names and IDs have it.
{
  base,
  key,
  merge,
}:
merge base {
  hosts.alpha.group = "eu";
  hosts.gamma = base.hosts.alpha // {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
  };
  hostGroups.eu = { };
  services.shell = {
    hosts = [
      "beta"
      "gamma"
    ];
    port = 22;
    scope = "node";
  };
  roles.reader = {
    services = [
      "shell@betta"
      "shell@alpha"
      "shell@eu"
      "shel@beta"
      "wiki"
      "shell.beta"
    ];
    except = [ "shell@gama" ];
  };
  serviceGroups.shells = [
    "shell@"
    "beta/shell"
    "shell.alpha"
  ];
}
