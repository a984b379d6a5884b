{ base, merge, ... }:
merge base {
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
    protocol = "ssh";
  };
  providers.ssh.hosts = [ "alpha" ];
  users.ann.roles = [
    "admin"
    "reader"
  ];
  roles = {
    reader.services = [
      "shell@alpha"
      "wiki"
    ];
    admin.logins."shell@beta" = [ "deploy" ];
  };
}
