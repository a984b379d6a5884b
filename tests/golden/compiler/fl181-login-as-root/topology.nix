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
  roles.reader = {
    services = [
      "shell"
      "wiki"
    ];
    logins."shell@beta" = [
      "deploy"
      "root"
    ];
  };
}
