# The cluster's names in /etc/hosts: programs just connect. NixOS writes its own.
common:
let
  inherit (common)
    command
    offline
    prefix
    simple
    state
    unit
    ;
in
{ bin }:
{
  ${unit "hosts-file.service"} = {
    Unit = {
      Description = "Keep the names of the cluster's services in /etc/hosts";
      StartLimitIntervalSec = 0;
    };
    Service =
      simple
      // offline
      // {
        ExecStart = command "${bin}/flor hosts-file" { inherit state; };
        # Of all files it sees these; one of /etc is replaced in its directory.
        BindPaths = "/etc";
        BindReadOnlyPaths = [
          "-/usr"
          bin
          state
        ];
        CapabilityBoundingSet = "";
        MemoryMax = "256M";
        PrivateUsers = true;
        ProcSubset = "pid";
        StateDirectory = prefix;
        TemporaryFileSystem = "/:ro";
        UMask = "0022";
      };
    Install.WantedBy = [ "multi-user.target" ];
  };
}
