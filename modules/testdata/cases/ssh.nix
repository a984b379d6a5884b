# sshd asks who may log in, and ssh knows the hosts, on hosts of a cluster with logins.
{
  lib,
  mkCluster,
  modules,
  ...
}:
let
  cluster = import ../../../tests/cluster/cluster.nix;
in
{
  imports = [ modules.default ];
  services.florete = {
    cluster.florete.demo = mkCluster (
      lib.recursiveUpdate cluster {
        services.shell = {
          host = "ursula";
          port = 22;
          protocol = "ssh";
        };
        roles.shells = {
          services = [ "shell" ];
          logins.shell = [ "deploy" ];
        };
        users.alice.roles = cluster.users.alice.roles ++ [ "shells" ];
        hosts.ursula.roles = cluster.hosts.ursula.roles or [ ] ++ [ "shells" ];
        providers.ssh.hosts = [ "drhorrible" ];
      }
    );
    hostName = "ursula";
  };
}
