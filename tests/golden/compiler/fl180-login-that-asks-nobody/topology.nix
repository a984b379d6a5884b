{ base, merge, ... }:
merge base {
  services.shell = {
    host = "beta";
    upstream = "192.0.2.9:22";
    listenPort = 22;
    protocol = "ssh";
  };
  providers.ssh.hosts = [ "alpha" ];
  roles.reader = {
    services = [
      "shell"
      "wiki"
    ];
    logins = {
      shell = [ "deploy" ];
      wiki = [ "deploy" ];
    };
  };
}
