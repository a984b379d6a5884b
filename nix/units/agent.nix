# The forwarder, which starts when the node's certificate is there.
common:
let
  inherit (builtins) any attrNames filter;
  # Kinds on a provider host whose processes it leads callers to.
  answering =
    policy:
    filter (kind: kind == "config" || (import ../kinds).${kind}.announced or false) (
      attrNames policy.provider
    );
  inherit (import ../lib) optionalAttrs;
  inherit (common)
    bind
    command
    confined
    current
    prefix
    privileged
    run
    service
    state
    unit
    ;
in
{
  manifest,
  policy,
  bin,
  settings,
}:
let
  f = manifest.forwarder;
  listeners = map (r: r.listen) (f.reach ++ f.socks) ++ f.listen;
  # Documents from the network can bring any listener.
  flags = {
    inherit state;
    socket = "${run}/agent/status.sock";
  }
  // settings;
  capability = bind (privileged listeners || any (n: n.kind == "config") manifest.needs);
in
{
  ${unit "agent.service"} = {
    Unit = {
      Description = "Carry connections between this host and its cluster";
      After = [
        "network.target"
        "nss-user-lookup.target"
        (unit "need-cert-node.target")
      ];
      ConditionPathExists = current "cert-node";
      StartLimitIntervalSec = 0;
    };
    Service =
      service
      // {
        ExecStart = command "${bin}/flor agent run" flags;
        # A process of the new program, in the new sandbox, takes over from the one that runs.
        ExecReload = command "${bin}/flor agent reload" flags;
        NotifyAccess = "exec"; # of ExecReload too, which reports the new main process
        X-ReloadIfChanged = true; # of NixOS
        User = prefix;
        Group = prefix;
        AmbientCapabilities = capability;
        CapabilityBoundingSet = capability;
        FileDescriptorStoreMax = 4096; # local listeners, for the next agent
        LimitNOFILE = 65536;
        MemoryMax = "1G"; # twice what agent/forward/usage lets it take: buffers of the kernel count too
        # What comes meanwhile waits in sockets that systemd holds.
        RestartSec = "200ms";
        RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX";
        # The directory above is root's: services get their credentials there.
        RuntimeDirectory = "${prefix}/agent";
        # agent/confine. systemd has no name for these three before release 254.
        SystemCallFilter = confined.SystemCallFilter ++ [
          "landlock_add_rule landlock_create_ruleset landlock_restrict_self"
        ];
        TimeoutStopSec = 20;
        UMask = "0077";
        WatchdogSec = 30;
      }
      # The sockets of operators, and of callers, are for these groups.
      // optionalAttrs (policy != null && answering policy != [ ]) {
        SupplementaryGroups =
          if answering policy == [ "config" ] then
            unit "provider-config"
          else
            map (kind: unit "provider-${kind}") (answering policy);
      };
    Install.WantedBy = [ (unit "need-cert-node.target") ];
  };
}
