# The same host, where sshd admits nobody by another key, since the sessions are recorded.
{ lib, mkCluster, ... }@arguments:
import ./ssh.nix (
  arguments
  // {
    mkCluster =
      cluster:
      mkCluster (
        lib.recursiveUpdate cluster {
          services.shell.record.recipients = [
            "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
          ];
        }
      );
  }
)
