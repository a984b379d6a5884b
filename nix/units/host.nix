# Answers requests about the host on sockets that only the forwarder may use. Each socket exists if
# a service of the host publishes it: one to read, one to act.
common:
let
  inherit (builtins)
    any
    attrNames
    filter
    listToAttrs
    ;
  inherit (common)
    command
    ofSocket
    offline
    prefix
    run
    simple
    state
    unit
    ;

  sockets = {
    host = {
      description = "What this host says of itself";
      path = "${run}-host.sock";
    };
    host-refetch = {
      description = "Asking this host to fetch a need again";
      path = "${run}-host-refetch.sock";
    };
  };
in
{ manifest, bin }:
let
  published = filter (
    name: any (p: p.upstream == "unix:${sockets.${name}.path}") manifest.forwarder.publish
  ) (attrNames sockets);
in
listToAttrs (
  map (name: {
    name = unit "${name}.socket";
    value = {
      Unit.Description = "${sockets.${name}.description}, for the forwarder";
      Socket = {
        FileDescriptorName = unit name;
        ListenStream = sockets.${name}.path;
        Service = unit "host.service";
        SocketMode = "0600";
        SocketUser = prefix;
      };
      Install.WantedBy = [ "sockets.target" ];
    };
  }) published
)
// (
  if published == [ ] then
    { }
  else
    {
      ${unit "host.service"} = {
        Unit = {
          Description = "Answer about this host";
        }
        // ofSocket (map (name: "${name}.socket") published);
        Service =
          simple
          // offline
          // {
            ExecStart = command "${bin}/flor host run" { inherit state; };
            DynamicUser = true;
            SupplementaryGroups = "${prefix} systemd-journal";
            CapabilityBoundingSet = "";
            MemoryMax = "512M";
            Environment = "PATH=/run/current-system/sw/bin:/usr/bin:/bin"; # for journalctl
            PrivateUsers = true;
            RuntimeDirectory = unit "host";
            RuntimeDirectoryPreserve = true;
            Sockets = map (name: unit "${name}.socket") published;
            UMask = "0022";
          };
      };
    }
)
