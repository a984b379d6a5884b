# The SPIFFE Workload API. Every account may connect, and the manifest decides which certificates it
# receives.
common:
let
  inherit (common)
    command
    ofSocket
    offline
    prefix
    run
    simple
    state
    unit
    ;
in
{ bin }:
{
  ${unit "workload.socket"} = {
    Unit.Description = "SPIFFE Workload API";
    Socket = {
      DirectoryMode = "0755";
      ListenStream = "${run}/workload.sock";
      SocketMode = "0666";
    };
    Install.WantedBy = [ "sockets.target" ];
  };
  ${unit "workload.service"} = {
    Unit = {
      Description = "Serve certificates of services to their processes";
    }
    // ofSocket [ "workload.socket" ];
    Service =
      simple
      // offline
      // {
        ExecStart = command "${bin}/flor workload" { inherit state; };
        # The account of the forwarder owns the keys; this process must not affect other processes.
        User = prefix;
        Group = prefix;
        # It sees these files, and processes with their control groups.
        BindReadOnlyPaths = [
          "/etc"
          "-/nix/store"
          "/sys/fs/cgroup"
          "-/usr"
          bin
          state
        ];
        CapabilityBoundingSet = "";
        LimitNOFILE = 65536;
        MemoryMax = "256M";
        ProcSubset = "pid";
        ProtectProc = "default";
        RestartSec = 1;
        TemporaryFileSystem = "/:ro";
        UMask = "0077";
      };
  };
}
