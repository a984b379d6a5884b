# Keeps other accounts of this host out of its published services, with a table of
# nftables that is there as long as it runs. Without nft(8) it waits for one.
common:
let
  inherit (common)
    command
    service
    state
    unit
    ;
in
{ bin }:
{
  ${unit "guard.service"} = {
    Unit = {
      Description = "Keep other accounts of this host out of its published services";
      # Nobody is logged in before it.
      Before = [
        "systemd-user-sessions.service"
        (unit "agent.service")
      ];
      StartLimitIntervalSec = 0;
    };
    Service = service // {
      ExecStart = command "${bin}/flor guard" { inherit state; };
      CapabilityBoundingSet = "CAP_NET_ADMIN";
      Environment = "PATH=/run/current-system/sw/bin:/usr/sbin:/usr/bin:/sbin:/bin"; # of nft
      IPAddressDeny = "any";
      KillMode = "mixed"; # the nft that takes the table out lives
      MemoryMax = "256M";
      RestrictAddressFamilies = "AF_NETLINK AF_UNIX";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };
}
