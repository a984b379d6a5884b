# Configures the reverse proxy of this host for the public names of the cluster. It tests and
# reloads nginx as root, or uses the Unix socket of Caddy.
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
  # nginx tests its configuration with the privileges of a start.
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
      Environment = "PATH=/run/current-system/sw/bin:/usr/sbin:/usr/bin:/sbin:/bin"; # for nginx
      MemoryDenyWriteExecute = false; # nginx compiles regular expressions
      MemoryMax = "256M";
      ReadWritePaths = [
        "-/etc/nginx"
        "-/run"
        "-/var/lib/nginx"
        "-/var/log/nginx"
      ];
      RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX"; # AF_NETLINK to list the addresses of the host
      SystemCallFilter = [
        "@system-service"
        "~@resources"
      ];
      UMask = "0022";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };
}
