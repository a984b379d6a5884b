# The cluster's names in /etc/hosts: programs just connect. NixOS writes its own.
let
  inherit (import ./parts.nix) command offline simple state;
in
{ bin }:
{
  "florete-names.service" = {
    Unit.Description = "Keep the names of the cluster's services in /etc/hosts";
    Service = simple // offline // {
      ExecStart = command "${bin}/flor names" { inherit state; };
      # Of all files it sees these; one of /etc is replaced in its directory.
      BindPaths = "/etc";
      BindReadOnlyPaths = [ "-/usr" bin state ];
      CapabilityBoundingSet = "";
      PrivateUsers = true;
      ProcSubset = "pid";
      StateDirectory = "florete";
      TemporaryFileSystem = "/:ro";
      UMask = "0022";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };
}
