# Undoes a change that nobody confirmed. It runs while a change is pending, even if the command that
# began it, activation or the network fails.
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
  # Shell commands that make a switch to a NixOS system wait for a confirmation. The arguments are
  # the system and the action of switch-to-configuration. If they fail, the switch stops.
  arm =
    { bin, timeout }:
    ''
      ${command "${bin}/flor sync arm" { confirm-timeout = timeout; }} "''${1-}" "''${2-}"
    '';

  units = { bin }: {
    ${unit "rollback.path"} = {
      Unit.Description = "Wait for a change that goes back unless it is confirmed";
      Path.PathExists = "${state}/change.json";
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
          # The process that hangs with the lock has the same account, so killing it needs no
          # capability.
          CapabilityBoundingSet = "";
          MemoryMax = "256M";
          OOMScoreAdjust = -900;
          PrivateUsers = true;
          ProtectProc = "default"; # in a container, another /proc would show another boot ID
          RestartSec = 1;
          StateDirectory = prefix;
          UMask = "0022";
          # A deployment need not restart it.
          X-RestartIfChanged = false;
        };
    };
  };
}
