# Goes back from what was put in force and nobody confirmed: there as long as a commit is
# pending, whatever becomes of its command, of activation and of the network.
common:
let
  inherit (common)
    command
    offline
    prefix
    service
    state
    unit
    ;
in
{
  # Shell that makes a switch to a NixOS system a commit. Its arguments are the system and
  # the action of switch-to-configuration, which goes no further where it fails.
  arm =
    { bin, timeout }:
    ''
      ${command "${bin}/flor sync arm" { commit-timeout = timeout; }} "''${1-}" "''${2-}"
    '';

  units = { bin }: {
    ${unit "rollback.path"} = {
      Unit.Description = "Wait for a change that goes back unless it is confirmed";
      Path.PathExists = "${state}/commit.json";
      Install.WantedBy = [ "paths.target" ];
    };
    ${unit "rollback.service"} = {
      Unit = {
        Description = "Go back from a change unless it is confirmed";
        StartLimitIntervalSec = 0;
      };
      Service =
        service
        // offline
        // {
          ExecStart = command "${bin}/flor sync rollback" { inherit state; };
          # To kill who hangs with the documents locked it needs no more than the same account.
          CapabilityBoundingSet = "";
          MemoryMax = "256M";
          OOMScoreAdjust = -900;
          PrivateUsers = true;
          ProtectProc = "default"; # another /proc would name another boot, in a container
          RestartSec = 1;
          StateDirectory = prefix;
          UMask = "0022";
          # The process of a deployment before is as good.
          X-RestartIfChanged = false;
        };
    };
  };
}
