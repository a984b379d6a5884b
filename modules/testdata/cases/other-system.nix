# The topology says what the host is not.
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
