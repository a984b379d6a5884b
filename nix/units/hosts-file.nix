# Writes the names of the cluster's services to /etc/hosts. NixOS writes its own.
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
        # It sees only these files. Replacing /etc/hosts needs the directory.
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
