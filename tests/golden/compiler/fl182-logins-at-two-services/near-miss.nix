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
  services.git = {
    host = "beta";
    port = 2222;
    protocol = "ssh";
  };
  roles.reader = {
    services = [
      "git"
      "shell"
      "wiki"
    ];
    logins = {
      git = [ "git" ];
      "shell@alpha" = [ "deploy" ];
    };
  };
}
