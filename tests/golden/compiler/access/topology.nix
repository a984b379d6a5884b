# The access matrix: the reserved roles, roles of nodes, services and users, groups, services on
# several hosts, services of each node, and hidden ones.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.roles = [ "operator" ];
  hosts.beta.users = [
    "ann"
    "root"
  ];
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    kind = "device";
  };
  services = {
    wiki = {
      host = "";
      hosts = [
        "beta"
        "gamma"
      ];
      roles = [ "worker" ];
    };
    queue = {
      host = "alpha";
      port = 5672;
      user = "rabbitmq";
    };
    shell = {
      hosts = [
        "alpha"
        "beta"
        "gamma"
      ];
      port = 22;
      scope = "node";
    };
    # Not published. It has an identity, because it reaches the queue.
    cron = {
      host = "gamma";
      port = 9000;
      visibility = "host";
      roles = [ "worker" ];
      user = "cron";
    };
    # Not published, and reaches nothing: no identity.
    spare = {
      host = "gamma";
      port = 9001;
      visibility = "host";
      user = "spare";
    };
    motd = {
      host = "alpha";
      port = 17;
    };
  };
  users = {
    root.roles = [
      "reader"
      "worker"
    ];
    # On no host: no SVID, so no allow list contains it.
    away.roles = [ "reader" ];
    none = { };
  };
  roles = {
    worker = {
      services = [ "queue" ];
      serviceGroups = [ "hidden" ];
    };
    unused.services = [ "wiki" ];
  };
  serviceGroups = {
    hidden = [ "cron" ];
    control-plane = [ "motd" ];
    control-plane-write = [ "shell" ];
  };
}
