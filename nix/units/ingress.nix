# Has the reverse proxy of this host take in strangers for the cluster's public names. It
# tests and reloads nginx as root, or speaks to Caddy on its Unix socket.
common:
let
  inherit (common)
    command
    simple
    state
    unit
    ;
in
{ bin, settings }:
let
  # nginx tests what it would do at its start.
  capabilities = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_KILL CAP_NET_BIND_SERVICE CAP_SETGID CAP_SETUID";
in
{
  ${unit "ingress.service"} = {
    Unit = {
      Description = "Take in strangers for the cluster's public names";
      After = [
        "nginx.service"
        "caddy.service"
      ];
      StartLimitIntervalSec = 0;
    };
    Service = simple // {
      ExecStart = command "${bin}/flor ingress" ({ inherit state; } // settings);
      CapabilityBoundingSet = capabilities;
      Environment = "PATH=/run/current-system/sw/bin:/usr/sbin:/usr/bin:/sbin:/bin"; # of nginx
      MemoryDenyWriteExecute = false; # nginx compiles expressions
      MemoryMax = "256M";
      ReadWritePaths = [
        "-/etc/nginx"
        "-/run"
        "-/var/lib/nginx"
        "-/var/log/nginx"
      ];
      RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX"; # which addresses this host has
      SystemCallFilter = [
        "@system-service"
        "~@resources"
      ];
      UMask = "0022";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };
}
