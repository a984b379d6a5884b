# Answers about the host on sockets that the forwarder alone may use. Each is there
# where a service of the host publishes it: one to look, one to act.
let
  inherit (builtins) any attrNames filter listToAttrs map;
  inherit (import ./parts.nix) command offline simple state;

  sockets = {
    florete-host = { description = "What this host says of itself"; path = "/run/florete-host.sock"; };
    florete-host-rotate = { description = "Asking this host to fetch a need again"; path = "/run/florete-host-rotate.sock"; };
  };
in
{ manifest, bin }:
let
  published = filter (name: any (p: p.upstream == "unix:${sockets.${name}.path}") manifest.forwarder.publish) (attrNames sockets);
in
listToAttrs (map
  (name: {
    name = "${name}.socket";
    value = {
      Unit.Description = "${sockets.${name}.description}, for the forwarder";
      Socket = {
        FileDescriptorName = name;
        ListenStream = sockets.${name}.path;
        Service = "florete-host.service";
        SocketMode = "0600";
        SocketUser = "florete";
      };
      Install.WantedBy = [ "sockets.target" ];
    };
  })
  published)
// (if published == [ ] then { } else {
  "florete-host.service" = {
    Unit.Description = "Answer about this host";
    Service = simple // offline // {
      ExecStart = command "${bin}/flor host run" { inherit state; };
      DynamicUser = true;
      SupplementaryGroups = "florete systemd-journal";
      CapabilityBoundingSet = "";
      Environment = "PATH=/run/current-system/sw/bin:/usr/bin:/bin"; # of journalctl
      PrivateUsers = true;
      RuntimeDirectory = "florete-host";
      RuntimeDirectoryPreserve = true;
      Sockets = map (name: "${name}.socket") published;
      UMask = "0022";
    };
  };
})
