# The forwarder, which starts when the certificate of the node is delivered.
common:
let
  inherit (builtins) any attrNames filter;
  # Kinds on a provider host whose sockets the forwarder connects to.
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
  listeners = map (r: r.listen) (f.reach ++ f.socks ++ f.entries or [ ]) ++ f.listen;
  # Documents from the network can add any listener.
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
        # The new program takes over from the running one, in a new sandbox.
        ExecReload = command "${bin}/flor agent reload" flags;
        NotifyAccess = "exec"; # also of ExecReload, which reports the new main process
        X-ReloadIfChanged = true; # for NixOS
        User = prefix;
        Group = prefix;
        AmbientCapabilities = capability;
        CapabilityBoundingSet = capability;
        FileDescriptorStoreMax = 4096; # local listeners, for the next forwarder
        LimitNOFILE = 65536;
        MemoryMax = "1G"; # twice the limit of agent/forward/usage: kernel buffers count too
        # systemd holds the sockets in which connections wait meanwhile.
        RestartSec = "200ms";
        RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX";
        # The parent directory belongs to root: services load credentials there.
        RuntimeDirectory = "${prefix}/agent";
        # For forward.Confine. systemd has no group for these three calls before release 254.
        SystemCallFilter = confined.SystemCallFilter ++ [
          "landlock_add_rule landlock_create_ruleset landlock_restrict_self"
        ];
        TimeoutStopSec = 20;
        UMask = "0077";
        WatchdogSec = 30;
      }
      # These groups may connect to the sockets of providers.
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
