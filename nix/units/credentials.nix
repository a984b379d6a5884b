# Gives services their credentials when systemd loads them. Only root may connect.
common:
let
  names = import ../lib/names.nix;
  inherit (common)
    command
    ofSocket
    offline
    prefix
    run
    service
    simple
    state
    unit
    ;
in
{
  # Reports whether a need belongs to a service.
  ofService = n: n.deliver.files != { } && names.service n.for != null;

  units = { bin }: {
    ${unit "credentials.socket"} = {
      Unit.Description = "Credentials of services, for systemd";
      Socket = {
        DirectoryMode = "0755";
        ListenStream = "${run}/credentials.sock";
        SocketMode = "0600";
      };
      Install.WantedBy = [ "sockets.target" ];
    };
    ${unit "credentials.service"} = {
      Unit = {
        Description = "Give services their credentials when these are there";
      }
      // ofSocket [ "credentials.socket" ];
      Service =
        simple
        // offline
        // {
          inherit (service) NotifyAccess; # to keep descriptors
          ExecStart = command "${bin}/flor credentials" { inherit state; };
          # It may read every file, so it sees only these.
          BindReadOnlyPaths = [
            "-/nix/store"
            "-/usr"
            bin
            state
            "-/run/dbus"
            "/run/systemd/notify"
          ];
          CapabilityBoundingSet = "CAP_DAC_READ_SEARCH";
          Environment = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket";
          MemoryMax = "256M";
          FileDescriptorStoreMax = 256; # waiting connections, for the next process
          ProcSubset = "pid";
          RestartSec = 1;
          StateDirectory = prefix;
          TemporaryFileSystem = "/:ro";
          UMask = "0077";
          # It ends when no unit waits; until then a restart would make units fail.
          X-RestartIfChanged = false;
        };
    };
  };
}
