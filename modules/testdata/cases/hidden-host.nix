# A hidden host, whose firewall opens no port although its owner asks for it: its forwarder listens on
# loopback.
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
  networking.hostName = "ursula";
  services.florete = {
    cluster.florete.demo = mkCluster (
      lib.recursiveUpdate cluster {
        pathSalt = "0123456789abcdef";
        hosts.drhorrible.relay = true;
        hosts.ursula = {
          hidden = true;
          relays = [ "drhorrible" ];
        };
      }
    );
    host.openFirewall = true;
  };
}
