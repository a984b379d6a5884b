# The instance on one host, those on a group of hosts, and all but one: the holders of each role are
# only in the documents of these hosts. For a service with both scopes, an exception also removes
# the shared name, which leads to any host.
{
  base,
  key,
  merge,
}:
merge base {
  hosts.alpha.group = "eu/fra";
  hosts.beta.users = [
    "ann"
    "ben"
    "cleo"
    "dora"
    "eve"
  ];
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    group = "eu";
    tags = [ "old" ];
  };
  hostGroups = {
    eu = { };
    "eu/fra" = { };
  };
  services.shell = {
    hosts = [
      "alpha"
      "beta"
      "gamma"
    ];
    port = 22;
    scope = "node";
  };
  services.shard = {
    hosts = [
      "alpha"
      "gamma"
    ];
    port = 9200;
    scope = "both";
    user = "shard";
  };
  users = {
    ann.roles = [ "everywhere" ];
    ben.roles = [ "europe" ];
    cleo.roles = [ "one" ];
    dora.roles = [ "most" ];
    eve.roles = [ "chief" ];
  };
  serviceGroups.shells = [ "shell@eu" ];
  roles = {
    reader.services = [ "wiki" ];
    everywhere.services = [
      "shell"
      "shard"
      "wiki"
    ];
    europe.serviceGroups = [ "shells" ];
    one.services = [
      "shell@beta"
      "shard@gamma"
    ];
    most = {
      services = [
        "shell"
        "shard"
        "wiki"
      ];
      except = [
        "shell@old"
        "shard@old"
        "wiki"
      ];
    };
    # Its access is that of `most` without shell on beta, and with the wiki again.
    chief = {
      roles = [ "most" ];
      services = [ "wiki" ];
      except = [ "shell@beta" ];
    };
  };
}
