# Activation, and the timer that starts it again if somebody stopped it, before certificates expire.
common:
let
  inherit (builtins) toJSON;
  inherit (common)
    command
    confined
    etc
    prefix
    service
    state
    unit
    ;
  names = import ../lib/names.nix;
  inherit (import ../lib) when;
in
{
  manifest,
  documents,
  bin,
  settings,
}:
let
  # Only a host that joined has a device key, which may be in the TPM.
  joins = manifest.identity.joins or false;
in
{
  ${unit "activate.service"} = {
    Unit = {
      Description = "Fetch what this host needs from its cluster's providers";
      After = [
        "network.target"
        "nss-user-lookup.target"
        "sshd-keygen.service"
      ];
      StartLimitIntervalSec = 0;
      # Changed documents change the unit, so that a deployment restarts it.
      X-Documents = names.sri (toJSON documents);
    };
    Service = service // {
      ExecStart = command "${bin}/flor activate" (
        {
          closure = "${etc}/documents";
          inherit state;
          owner = prefix;
        }
        // settings
      );
      # It may read every file, so it sees only these.
      BindPaths = [ state ] ++ when joins [ "-/dev/tpmrm0" ];
      BindReadOnlyPaths = [
        "/etc"
        "/run"
        "-/nix/store"
        "-/sys"
        "-/usr"
        bin
      ]
      ++ (if settings ? ssh-host-key then [ settings.ssh-host-key ] else [ ]);
      # Distributions give the TPM device to an account of its own.
      CapabilityBoundingSet =
        "CAP_CHOWN CAP_DAC_READ_SEARCH" + (if joins then " CAP_DAC_OVERRIDE" else "");
      DeviceAllow = when joins [ "/dev/tpmrm0 rw" ];
      Environment = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket";
      MemoryMax = "1G";
      ProcSubset = "pid";
      RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX";
      StateDirectory = prefix;
      StateDirectoryMode = "0755";
      SuccessExitStatus = 2;
      # The group may connect to the forwarder's socket, whose status is part of the report.
      SupplementaryGroups = prefix;
      SystemCallFilter = confined.SystemCallFilter ++ [ "@chown" ];
      # Not RootDirectory=: systemd 257 cannot mount its own directories into a root in which
      # /run/host belongs to another system.
      TemporaryFileSystem = "/:ro";
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
