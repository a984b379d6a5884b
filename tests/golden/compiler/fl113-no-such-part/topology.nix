# An unknown host, a host and a group where the service does not run, an unknown service, and an
# instance on one host in the form of names and IDs.
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
