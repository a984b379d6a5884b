# The SPIFFE Workload API, at which every account may connect: the manifest has who gets what.
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
        # The keys are the forwarder's to read, which has no business with other processes.
        User = prefix;
        Group = prefix;
        # It sees these files, processes and their control groups.
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
