# The topology declares another system than that of the host.
{
  mkCluster,
  modules,
  lib,
  ...
}:
let
  cluster = import ../../../tests/cluster/cluster.nix;
in
{
  imports = [ modules.default ];
  services.florete.cluster = mkCluster (
    lib.recursiveUpdate cluster { hosts.ursula.system = "aarch64-linux"; }
  );
  services.florete.hostName = "ursula";
}
