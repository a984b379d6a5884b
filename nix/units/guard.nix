# Keeps other accounts of this host away from the upstreams of its services, with a table of
# nftables that exists while it runs. Without nft(8) it waits.
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
      # It is active before anybody can log in.
      Before = [
        "systemd-user-sessions.service"
        (unit "agent.service")
      ];
      StartLimitIntervalSec = 0;
    };
    Service = service // {
      ExecStart = command "${bin}/flor guard" { inherit state; };
      CapabilityBoundingSet = "CAP_NET_ADMIN";
      Environment = "PATH=/run/current-system/sw/bin:/usr/sbin:/usr/bin:/sbin:/bin"; # for nft
      IPAddressDeny = "any";
      KillMode = "mixed"; # the nft that removes the table must live
      MemoryMax = "256M";
      RestrictAddressFamilies = "AF_NETLINK AF_UNIX";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };
}
