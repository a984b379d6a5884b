# Activation, and the timer that starts one that someone stopped, before certificates
# run out.
parts:
let
  inherit (builtins) toJSON;
  inherit (parts) command confined etc prefix run service state unit;
  names = import ../names.nix;
in
{ documents, bin, settings }:
{
  ${unit "activate.service"} = {
    Unit = {
      Description = "Fetch what this host needs from its cluster's providers";
      After = [ "network.target" "nss-user-lookup.target" "sshd-keygen.service" ];
      StartLimitIntervalSec = 0;
      # Other documents are another unit: a deployment starts it again.
      X-Documents = names.sri (toJSON documents);
    };
    Service = service // {
      ExecStart = command "${bin}/flor activate" ({
        closure = "${etc}/documents";
        inherit state;
        owner = prefix;
      } // settings);
      # It may read every file, so it sees few.
      BindReadOnlyPaths = [ "/etc" "/run" "-/nix/store" "-/usr" bin ]
        ++ (if settings ? ssh-host-key then [ settings.ssh-host-key ] else [ ]);
      CapabilityBoundingSet = "CAP_CHOWN CAP_DAC_READ_SEARCH";
      Environment = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket";
      MemoryMax = "1G";
      MountAPIVFS = true;
      ProcSubset = "pid";
      RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX";
      RootDirectory = "${run}-activate";
      RuntimeDirectory = unit "activate";
      StateDirectory = prefix;
      StateDirectoryMode = "0755";
      SuccessExitStatus = 2;
      SystemCallFilter = confined.SystemCallFilter ++ [ "@chown" ];
      UMask = "0022";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };

  ${unit "refresh.timer"} = {
    Unit.Description = "See that what this host needs is kept fulfilled";
    Timer = {
      OnCalendar = "hourly";
      RandomizedDelaySec = "30min";
      Unit = unit "activate.service";
    };
    Install.WantedBy = [ "timers.target" ];
  };
}
